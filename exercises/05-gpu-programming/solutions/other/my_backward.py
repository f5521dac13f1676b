"""Another solution of 5.10's backward pass, in torch: a loop over blocks of queries, and a loop over blocks of keys."""

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


def weigh(q: torch.Tensor, k: torch.Tensor, log_sums: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
    """Return the weights of a tile."""
    weights = torch.exp(q @ k.mT * q.shape[-1] ** -0.5 - log_sums[..., None])
    return weights if hidden is None else weights.masked_fill(hidden, 0)


class Attention(torch.autograd.Function):
    """Attention for training: `out = Attention.apply(q, k, v, causal, block)`."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block: int) -> torch.Tensor:
        """Return attention, and keep the inputs, the result and the logarithms."""
        out, log_sums = attend(q, k, v, causal, block)
        ctx.save_for_backward(q, k, v, out, log_sums)
        ctx.sizes = causal, block
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of q, k and v."""
        q, k, v, out, log_sums = ctx.saved_tensors
        causal, block = ctx.sizes
        length, scale = q.shape[1], q.shape[2] ** -0.5
        delta = torch.einsum("hnd,hnd->hn", grad_out, out)[..., None]
        spans = [slice(first, min(first + block, length)) for first in range(0, length, block)]
        places = torch.arange(length, device=q.device)

        def visit(queries: slice, keys: slice) -> tuple[torch.Tensor, torch.Tensor]:
            hidden = places[keys][None, :] > places[queries][:, None] if causal else None
            weights = weigh(q[:, queries], k[:, keys], log_sums[:, queries], hidden)
            grad_weights = grad_out[:, queries] @ v[:, keys].mT
            return weights, weights * (grad_weights - delta[:, queries]) * scale

        grads_q, grads_k, grads_v = [], [], []
        for number, queries in enumerate(spans):
            visible_spans = spans[: number + 1] if causal else spans
            grads_q.append(sum(visit(queries, keys)[1] @ k[:, keys] for keys in visible_spans))
        for number, keys in enumerate(spans):
            grad_k, grad_v = torch.zeros_like(k[:, keys]), torch.zeros_like(v[:, keys])
            for queries in spans[number:] if causal else spans:
                weights, grad_scores = visit(queries, keys)
                grad_v += weights.mT @ grad_out[:, queries]
                grad_k += grad_scores.mT @ q[:, queries]
            grads_k.append(grad_k)
            grads_v.append(grad_v)
        return *(torch.cat(blocks, 1) for blocks in (grads_q, grads_k, grads_v)), None, None
