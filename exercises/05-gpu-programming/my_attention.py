"""Your second part of 5.10: FlashAttention, the forward pass, in Triton.

You will learn    how attention works without its matrix of scores: tiles, and the softmax of your first part
You will produce  a kernel that writes only its result to main memory, causal or not, for any length
Try it            gpucourse try 5.10 (in the interpreter, on the processor); gpucourse run 5.10 also counts and compiles
Your part         the arithmetic of `attend`, and how far its loop goes if CAUSAL is true; then remove the line of
                  `attention` that says it is not written. Keep both names and their parameters
Reading           modules/05-gpu-programming/lesson-12-attention.md, "Attention in tiles"
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head in each program: out = softmax(q · kᵀ · scale) · v.

    q, k, v and out have the shape (heads, length, D) and are contiguous. `length` need not be a multiple of either block.
    If CAUSAL is true, query i sees the keys 0 to i, and a block of keys that no query of the program sees is not loaded.
    Compute in float32 whatever the inputs are. In float32, tl.dot rounds its inputs to 10 bits (TF32) on a GPU from sm_80 on,
    unless you write input_precision="ieee".
    """
    block, head = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, D)
    queries = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    places = head * length * D + queries[:, None] * D + columns[None, :]
    q = tl.load(q_ptr + places, mask=queries[:, None] < length, other=0.0)
    out = tl.zeros((BLOCK_Q, D), tl.float32)
    for first in range(0, length, BLOCK_K):
        keys = first + tl.arange(0, BLOCK_K)
        tile = head * length * D + keys[:, None] * D + columns[None, :]
        k = tl.load(k_ptr + tile, mask=keys[:, None] < length, other=0.0)
        v = tl.load(v_ptr + tile, mask=keys[:, None] < length, other=0.0)
        # yours: the scores of q and k, how they change what was kept, and v
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=queries[:, None] < length)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block_q: int, block_k: int) -> torch.Tensor:
    """Return attention for all heads. q, k and v have shape (heads, length, d). d is a power of two, and the scale is 1 /
    sqrt(d)."""
    heads, length, d = q.shape
    out = torch.empty_like(q)
    attend[triton.cdiv(length, block_q), heads](
        q, k, v, out, length, d**-0.5, D=d, CAUSAL=causal, BLOCK_Q=block_q, BLOCK_K=block_k
    )
    raise NotImplementedError("attend: what do you keep of each tile, so that you can add the next?")  # remove this line
    return out
