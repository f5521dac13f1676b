"""Solve the dispatch of 9.2 with lists of rows for each rank and expert, and inverse permutations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class AllToAll(torch.autograd.Function):
    """An all-to-all that saves the sizes in a tensor."""

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, send: list[int], receive: list[int], exchange: Callable[..., torch.Tensor]
    ) -> torch.Tensor:
        """Return the rows that arrive."""
        ctx.save_for_backward(torch.tensor([send, receive]))
        ctx.exchange = exchange
        return exchange(rows, send, receive)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradients of the rows that were sent."""
        (sizes,) = ctx.saved_tensors
        there, here = sizes.tolist()
        return ctx.exchange(gradient.contiguous(), here, there), None, None, None


def forward(
    x: torch.Tensor,
    weights: torch.Tensor,
    chosen: torch.Tensor,
    experts: int,
    exchange_counts: Callable[[torch.Tensor], torch.Tensor],
    exchange: Callable[[torch.Tensor, list[int], list[int]], torch.Tensor],
    compute: Callable[[torch.Tensor, list[int]], torch.Tensor],
) -> torch.Tensor:
    """Return for each token the weighted sum of the rows that come back for its pairs."""
    k = chosen.shape[1]
    queue = torch.cat([(chosen.flatten() == expert).nonzero().flatten() for expert in range(experts)])
    counts = torch.tensor([int((chosen == expert).sum()) for expert in range(experts)])
    table = exchange_counts(counts)
    n, each = table.shape
    send = [int(part.sum()) for part in counts.split(each)]
    receive = [int(row.sum()) for row in table]
    rows = torch.index_select(x, 0, torch.div(queue, k, rounding_mode="floor"))
    arrived = AllToAll.apply(rows, send, receive, exchange)
    pieces = iter(arrived.split(table.flatten().tolist()))
    boxes = [[next(pieces) for _ in range(each)] for _ in range(n)]
    outputs = compute(torch.cat([boxes[rank][expert] for expert in range(each) for rank in range(n)]), table.sum(0).tolist())
    done = iter(outputs.split(table.T.flatten().tolist()))
    results = [[next(done) for _ in range(n)] for _ in range(each)]
    back = torch.cat([results[expert][rank] for rank in range(n) for expert in range(each)])
    home = AllToAll.apply(back, receive, send, exchange)
    places = torch.empty_like(queue)
    places[queue] = torch.arange(len(queue))
    return (home[places].view(*chosen.shape, x.shape[1]) * weights[..., None]).sum(1)
