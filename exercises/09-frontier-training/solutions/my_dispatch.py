"""Solve the dispatch of 9.2: sort pairs by expert, exchange counts and rows, group rows by expert, and send them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class AllToAll(torch.autograd.Function):
    """An all-to-all whose gradients go back."""

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, send: list[int], receive: list[int], exchange: Callable[..., torch.Tensor]
    ) -> torch.Tensor:
        """Return the rows that arrive."""
        ctx.back = receive, send, exchange
        return exchange(rows, send, receive)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradients of the rows that were sent."""
        sizes, arriving, exchange = ctx.back
        return exchange(gradient, sizes, arriving), None, None, None


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
    rows = AllToAll.apply(x[tokens], send, receive, exchange)
    labels = torch.arange(each).repeat(ranks).repeat_interleave(arriving.flatten())
    grouped = labels.argsort(stable=True)
    outputs = compute(rows[grouped], arriving.sum(0).tolist())
    back = torch.empty_like(outputs).index_copy(0, grouped, outputs)
    home = AllToAll.apply(back, receive, send, exchange)
    return torch.zeros_like(x).index_add(0, tokens, home * weights.flatten()[order, None])
