"""Another solution of 5.10: FlashAttention normalises the result after each tile, and uses powers of 2 instead of exp."""

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
    total = tl.full((BLOCK_Q,), float("-inf"), tl.float32)  # the logarithm of the sum, to the base 2
    out = tl.zeros((BLOCK_Q, D), tl.float32)
    last = length if not CAUSAL else tl.minimum(length, block * BLOCK_Q + BLOCK_Q)
    for number in range(tl.cdiv(last, BLOCK_K)):
        keys = number * BLOCK_K + tl.arange(0, BLOCK_K)
        tile = head * length * D + keys[None, :] * D + columns[:, None]
        k = tl.load(k_ptr + tile, mask=keys[None, :] < length, other=0.0)
        flat = head * length * D + keys[:, None] * D + columns[None, :]
        v = tl.load(v_ptr + flat, mask=keys[:, None] < length, other=0.0)
        limit = tl.minimum(length - 1, queries) if CAUSAL else tl.zeros((BLOCK_Q,), tl.int32) + length - 1
        scores = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        scores += tl.where(keys[None, :] <= limit[:, None], 0.0, float("-inf"))
        highest = tl.maximum(tl.max(scores, axis=1), total)
        share = tl.exp2(scores - highest[:, None])
        both = highest + tl.log2(tl.exp2(total - highest) + tl.sum(share, axis=1))
        out = out * tl.exp2(total - both)[:, None]
        out += tl.dot((share * tl.exp2(highest - both)[:, None]).to(v.dtype), v, input_precision="ieee")
        total = both
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=queries[:, None] < length)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block_q: int, block_k: int) -> torch.Tensor:
    """Return attention for all heads. q, k and v have shape (heads, length, d), d a power of two; the scale is 1 / sqrt(d)."""
    heads, length, d = q.shape
    out = torch.empty_like(q)
    attend[triton.cdiv(length, block_q), heads](
        q, k, v, out, length, d**-0.5, D=d, CAUSAL=causal, BLOCK_Q=block_q, BLOCK_K=block_k
    )
    return out
