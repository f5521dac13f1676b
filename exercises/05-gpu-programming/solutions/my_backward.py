"""The backward pass of FlashAttention of 5.10: one kernel loops over queries for k and v, another over keys for q."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def backward_of_keys(
    q_ptr, k_ptr, v_ptr, log_ptr, delta_ptr, grad_out_ptr, grad_k_ptr, grad_v_ptr, length, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of keys and of their values, summed over all queries that see them."""
    block, head = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, D)[None, :]
    keys = block * BLOCK + tl.arange(0, BLOCK)
    tile = head * length * D + keys[:, None] * D + columns
    k = tl.load(k_ptr + tile, mask=keys[:, None] < length, other=0.0)
    v = tl.load(v_ptr + tile, mask=keys[:, None] < length, other=0.0)
    grad_k = tl.zeros((BLOCK, D), tl.float32)
    grad_v = tl.zeros((BLOCK, D), tl.float32)
    for first in range(block * BLOCK if CAUSAL else 0, length, BLOCK):
        queries = first + tl.arange(0, BLOCK)
        inside = queries < length
        places = head * length * D + queries[:, None] * D + columns
        q = tl.load(q_ptr + places, mask=inside[:, None], other=0.0)
        grad_out = tl.load(grad_out_ptr + places, mask=inside[:, None], other=0.0)
        log_sum = tl.load(log_ptr + head * length + queries, mask=inside, other=0.0)
        delta = tl.load(delta_ptr + head * length + queries, mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = inside[:, None] & (keys[None, :] < length)
        if CAUSAL:
            visible = visible & (keys[None, :] <= queries[:, None])
        weights = tl.where(visible, tl.exp(scores - log_sum[:, None]), 0.0)
        grad_v += tl.dot(tl.trans(weights), grad_out, input_precision="ieee")
        grad_weights = tl.dot(grad_out, tl.trans(v), input_precision="ieee")
        grad_scores = weights * (grad_weights - delta[:, None]) * scale
        grad_k += tl.dot(tl.trans(grad_scores), q, input_precision="ieee")
    tl.store(grad_k_ptr + tile, grad_k, mask=keys[:, None] < length)
    tl.store(grad_v_ptr + tile, grad_v, mask=keys[:, None] < length)


@triton.jit
def backward_of_queries(
    q_ptr, k_ptr, v_ptr, log_ptr, delta_ptr, grad_out_ptr, grad_q_ptr, length, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of queries, summed over all keys that they see."""
    block, head = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, D)[None, :]
    queries = block * BLOCK + tl.arange(0, BLOCK)
    inside = queries < length
    places = head * length * D + queries[:, None] * D + columns
    q = tl.load(q_ptr + places, mask=inside[:, None], other=0.0)
    grad_out = tl.load(grad_out_ptr + places, mask=inside[:, None], other=0.0)
    log_sum = tl.load(log_ptr + head * length + queries, mask=inside, other=0.0)
    delta = tl.load(delta_ptr + head * length + queries, mask=inside, other=0.0)
    grad_q = tl.zeros((BLOCK, D), tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, (block + 1) * BLOCK)
    for first in range(0, end, BLOCK):
        keys = first + tl.arange(0, BLOCK)
        tile = head * length * D + keys[:, None] * D + columns
        k = tl.load(k_ptr + tile, mask=keys[:, None] < length, other=0.0)
        v = tl.load(v_ptr + tile, mask=keys[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = keys[None, :] < length
        if CAUSAL:
            visible = visible & (keys[None, :] <= queries[:, None])
        weights = tl.where(visible, tl.exp(scores - log_sum[:, None]), 0.0)
        grad_weights = tl.dot(grad_out, tl.trans(v), input_precision="ieee")
        grad_q += tl.dot(weights * (grad_weights - delta[:, None]) * scale, k, input_precision="ieee")
    tl.store(grad_q_ptr + places, grad_q, mask=inside[:, None])


def backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, log_sums: torch.Tensor, grad_out: torch.Tensor,
    causal: bool, block: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the gradients of q, k and v."""
    heads, length, d = q.shape
    grad_q, grad_k, grad_v = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    delta = (grad_out * out).sum(-1)  # what the division by the sum subtracts from each weight's gradient
    grid, sizes = (triton.cdiv(length, block), heads), {"D": d, "CAUSAL": causal, "BLOCK": block}
    arguments = (q, k, v, log_sums, delta, grad_out)
    backward_of_keys[grid](*arguments, grad_k, grad_v, length, d**-0.5, **sizes)
    backward_of_queries[grid](*arguments, grad_q, length, d**-0.5, **sizes)
    return grad_q, grad_k, grad_v
