"""Pairs sorted by expert, counts there, rows there, rows grouped by expert and ungrouped, rows back."""

from __future__ import annotations

from collections.abc import Callable

import torch


def forward(
    x: torch.Tensor,
    weights: torch.Tensor,
    chosen: torch.Tensor,
    experts: int,
    exchange_counts: Callable[[torch.Tensor], torch.Tensor],
    exchange: Callable[[torch.Tensor, list[int], list[int]], torch.Tensor],
    compute: Callable[[torch.Tensor, list[int]], torch.Tensor],
) -> torch.Tensor:
    """Return the weighted sum of the rows that come back."""
    pairs = chosen.flatten()
    order = pairs.argsort(stable=True)
    tokens = order // chosen.shape[1]
    counts = torch.bincount(pairs, minlength=experts)
    arriving = exchange_counts(counts)
    ranks, each = arriving.shape
    send = counts.view(ranks, each).sum(1).tolist()
    receive = arriving.sum(1).tolist()
    rows = exchange(x[tokens], send, receive)
    labels = torch.arange(each).repeat(ranks).repeat_interleave(arriving.flatten())
    grouped = labels.argsort(stable=True)
    outputs = compute(rows[grouped], arriving.sum(0).tolist())
    back = torch.empty_like(outputs).index_copy(0, grouped, outputs)
    home = exchange(back, receive, send)
    return torch.zeros_like(x).index_add(0, tokens, home * weights.flatten()[order, None])
