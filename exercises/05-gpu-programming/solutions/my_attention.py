"""A solution of 5.10: FlashAttention computes an online softmax over tiles of keys, in float32. Hidden scores are -inf."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head in each program."""
    block, head = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, D)
    queries = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    places = head * length * D + queries[:, None] * D + columns[None, :]
    q = tl.load(q_ptr + places, mask=queries[:, None] < length, other=0.0)
    highest = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    out = tl.zeros((BLOCK_Q, D), tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, (block + 1) * BLOCK_Q)
    for first in range(0, end, BLOCK_K):
        keys = first + tl.arange(0, BLOCK_K)
        tile = head * length * D + keys[:, None] * D + columns[None, :]
        k = tl.load(k_ptr + tile, mask=keys[:, None] < length, other=0.0)
        v = tl.load(v_ptr + tile, mask=keys[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = keys[None, :] < length
        if CAUSAL:
            visible = visible & (keys[None, :] <= queries[:, None])
        scores = tl.where(visible, scores, float("-inf"))
        new = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp(scores - new[:, None])
        shrink = tl.exp(highest - new)
        total = total * shrink + tl.sum(weights, axis=1)
        out = out * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        highest = new
    out = out / total[:, None]
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=queries[:, None] < length)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block_q: int, block_k: int) -> torch.Tensor:
    """Return attention for all heads. q, k and v have shape (heads, length, d), d a power of two; the scale is 1 / sqrt(d)."""
    heads, length, d = q.shape
    out = torch.empty_like(q)
    attend[triton.cdiv(length, block_q), heads](
        q, k, v, out, length, d**-0.5, D=d, CAUSAL=causal, BLOCK_Q=block_q, BLOCK_K=block_k
    )
    return out
