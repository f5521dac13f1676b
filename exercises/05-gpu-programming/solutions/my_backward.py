"""A solution of 5.10's backward pass: a program sums over queries for its keys, then over keys for its queries."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention, and the logarithm of each query's sum of exp(score), of shape (heads, length).

    The scores contain the scale 1 / √d. Only `block` rows of them exist at the same time.
    """
    length, scale, places = q.shape[1], q.shape[2] ** -0.5, torch.arange(q.shape[1], device=q.device)
    results = []
    for queries in places.split(block):
        scores = q[:, queries] @ k.mT * scale
        if causal:
            scores = scores.masked_fill(places[None, :length] > queries[:, None], float("-inf"))
        log_sums = scores.logsumexp(-1, keepdim=True)
        results.append((torch.exp(scores - log_sums) @ v, log_sums[..., 0]))
    out, log_sums = (torch.cat(parts, 1) for parts in zip(*results, strict=True))
    return out, log_sums


@triton.jit
def weigh(q, k, log_sums, queries, keys, length, scale, CAUSAL: tl.constexpr):
    """Return the weights of a tile."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    visible = (queries[:, None] < length) & (keys[None, :] < length)
    if CAUSAL:
        visible = visible & (keys[None, :] <= queries[:, None])
    return tl.where(visible, tl.exp(scores - log_sums[:, None]), 0.0)


@triton.jit
def backpropagate(
    q_ptr, k_ptr, v_ptr, log_ptr, delta_ptr, grad_out_ptr, grad_q_ptr, grad_k_ptr, grad_v_ptr, length, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of keys and their values, then those of the queries at the same positions."""
    block, head = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, D)[None, :]
    base = head * length
    rows = block * BLOCK + tl.arange(0, BLOCK)
    inside = rows[:, None] < length
    places = (base + rows[:, None]) * D + columns

    k = tl.load(k_ptr + places, mask=inside, other=0.0)
    v = tl.load(v_ptr + places, mask=inside, other=0.0)
    grad_k = tl.zeros((BLOCK, D), tl.float32)
    grad_v = tl.zeros((BLOCK, D), tl.float32)
    for first in range(block * BLOCK if CAUSAL else 0, length, BLOCK):
        queries = first + tl.arange(0, BLOCK)
        tile = (base + queries[:, None]) * D + columns
        q = tl.load(q_ptr + tile, mask=queries[:, None] < length, other=0.0)
        grad_out = tl.load(grad_out_ptr + tile, mask=queries[:, None] < length, other=0.0)
        log_sums = tl.load(log_ptr + base + queries, mask=queries < length, other=0.0)
        delta = tl.load(delta_ptr + base + queries, mask=queries < length, other=0.0)
        weights = weigh(q, k, log_sums, queries, rows, length, scale, CAUSAL)
        grad_v += tl.dot(tl.trans(weights), grad_out, input_precision="ieee")
        grad_weights = tl.dot(grad_out, tl.trans(v), input_precision="ieee")
        grad_scores = weights * (grad_weights - delta[:, None])
        grad_k += tl.dot(tl.trans(grad_scores), q, input_precision="ieee") * scale
    tl.store(grad_k_ptr + places, grad_k, mask=inside)
    tl.store(grad_v_ptr + places, grad_v, mask=inside)

    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    grad_out = tl.load(grad_out_ptr + places, mask=inside, other=0.0)
    log_sums = tl.load(log_ptr + base + rows, mask=rows < length, other=0.0)
    delta = tl.load(delta_ptr + base + rows, mask=rows < length, other=0.0)
    grad_q = tl.zeros((BLOCK, D), tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, (block + 1) * BLOCK)
    for first in range(0, end, BLOCK):
        keys = first + tl.arange(0, BLOCK)
        tile = (base + keys[:, None]) * D + columns
        k = tl.load(k_ptr + tile, mask=keys[:, None] < length, other=0.0)
        v = tl.load(v_ptr + tile, mask=keys[:, None] < length, other=0.0)
        weights = weigh(q, k, log_sums, rows, keys, length, scale, CAUSAL)
        grad_weights = tl.dot(grad_out, tl.trans(v), input_precision="ieee")
        grad_q += tl.dot(weights * (grad_weights - delta[:, None]), k, input_precision="ieee") * scale
    tl.store(grad_q_ptr + places, grad_q, mask=inside)


class Attention(torch.autograd.Function):
    """Attention for training: `out = Attention.apply(q, k, v, causal, block)`."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block: int) -> torch.Tensor:
        """Return attention, and keep the inputs, the result and the logarithms."""
        out, log_sums = attend(q, k, v, causal, block)
        ctx.save_for_backward(q, k, v, out, log_sums)
        ctx.causal, ctx.block = causal, block
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of q, k and v."""
        q, k, v, out, log_sums = ctx.saved_tensors
        heads, length, d = q.shape
        delta = (grad_out * out).sum(-1)
        inputs = [tensor.contiguous() for tensor in (q, k, v, log_sums, delta, grad_out)]
        grads = [torch.empty_like(inputs[0]) for _ in range(3)]
        backpropagate[triton.cdiv(length, ctx.block), heads](
            *inputs, *grads, length, d**-0.5, D=d, CAUSAL=ctx.causal, BLOCK=ctx.block
        )
        return *grads, None, None
