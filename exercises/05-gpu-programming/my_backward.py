"""Your third part of 5.10: the backward pass of FlashAttention-2, so that attention in tiles can train a model.

You will learn    how to compute weights a second time, tile by tile, and which loop may add up which gradient
You will produce  gradients of q, k and v, without N x N numbers, and a model that they train
Try it            gpucourse try 5.10 (on the processor); gpucourse run 5.10 trains a model with it and your kernel
Your part         what `forward` keeps, and the body of `backward`: kernels of your own in Triton, or torch tile by tile
Reading           modules/05-gpu-programming/lesson-12-attention.md, "Backward"
"""

from __future__ import annotations

from typing import Any

import torch


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


class Attention(torch.autograd.Function):
    """Attention for training: `out = Attention.apply(q, k, v, causal, block)`.

    q, k, v and out have the shape (heads, length, d) and are float32; q, k, v and the gradient of out need not be contiguous.
    If `causal` is true, query i sees the keys 0 to i. `block` is the side of a tile, a power of two, at least 16; the length
    need not be a multiple of it.
    """

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block: int) -> torch.Tensor:
        """Return attention, and keep in `ctx` what `backward` needs: at most 5 · heads · length · d numbers."""
        ctx.causal, ctx.block = causal, block
        raise NotImplementedError("forward: which tensors does backward need, so that no weights have to be kept?")
        return attend(q, k, v, causal, block)[0]

    @staticmethod
    def backward(ctx: Any, grad_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient of each argument of `forward`: of q, k and v, and None for the other two.

        Imagine that each turn of your outer loop is a program of a GPU. Programs run at the same time and in any order, so two
        of them must not write to the same number, except by atomic additions in Triton. Without these, 7 products are enough
        for each tile. If causal, compute no tile that no query sees.
        """
        raise NotImplementedError("backward: from which two tensors do the weights of a tile follow, without its whole row?")
