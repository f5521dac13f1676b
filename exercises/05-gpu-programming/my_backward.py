"""The challenge of 5.10: the backward pass of FlashAttention. It is not graded, but a run judges it.

You will learn    how to recompute weights that were never stored, tile by tile, and why the log of the sum is kept
You will produce  the gradients of q, k and v, without a tensor as large as the matrix of scores
Try it            gpucourse run 5.10 (the table "The challenge" has the errors)
Your part         the body of `backward`, with kernels of your own in Triton, or in torch, tile by tile
Reading           modules/05-gpu-programming/lesson-12-attention.md, "The challenge: backward"
"""

from __future__ import annotations

import torch


def backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, log_sums: torch.Tensor, grad_out: torch.Tensor,
    causal: bool, block: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the gradients of q, k and v. All tensors but `log_sums` have the shape (heads, length, d), and all are float32.

    `log_sums`, of the shape (heads, length), is the logarithm of the sum of exp(score) of each query. The scores contain the
    scale 1 / √d, so exp(score - log_sum) is the weight.
    `block` is the side of a tile. The length need not be a multiple of it.
    """
    raise NotImplementedError("backward: from which two tensors do the weights of a tile follow, without its whole row?")
