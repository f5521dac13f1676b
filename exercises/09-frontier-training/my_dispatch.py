"""Your part of 9.2: send tokens to their experts on other ranks and back, so that a backward pass goes the same way.

You will learn    why rows are sorted twice, and how gradients go back through an all-to-all
You will produce  `AllToAll`, which autograd can follow, and `forward`, a layer of experts with the results of one process
Try it            gpucourse try 9.2
Your part         the bodies of the three functions; keep all names and parameters
Reading           modules/09-frontier-training/lesson-3-experts.md
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Exchange = Callable[[torch.Tensor, list[int], list[int]], torch.Tensor]


class AllToAll(torch.autograd.Function):
    """Rows that change ranks, and gradients that go back: `AllToAll.apply(rows, send, receive, exchange)`.

    `exchange(rows, send, receive)` sends the first send[0] rows to rank 0, the next send[1] to rank 1 ..., and returns the rows
    that arrive: receive[0] from rank 0 first, then receive[1] from rank 1 ... Autograd does not follow it.
    """

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, send: list[int], receive: list[int], exchange: Exchange) -> torch.Tensor:
        """Return the rows that arrive."""
        raise NotImplementedError("AllToAll.forward: what will backward have to know?")

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradient of `rows`, and None for the other three. `gradient` is that of the rows that arrived."""
        raise NotImplementedError("AllToAll.backward: which rank needs the gradient of a row that came from rank 3?")


def forward(
    x: torch.Tensor,
    weights: torch.Tensor,
    chosen: torch.Tensor,
    experts: int,
    exchange_counts: Callable[[torch.Tensor], torch.Tensor],
    exchange: Exchange,
    compute: Callable[[torch.Tensor, list[int]], torch.Tensor],
) -> torch.Tensor:
    """Return the output (tokens, width) for this rank's tokens: for each, the sum over its experts of weight times output.

    `x` (tokens, width) are this rank's tokens, `chosen` (tokens, k) the experts of each, and `weights` (tokens, k) their
    weights. Each rank has its own number of tokens. Rank r of n has the experts from r * experts / n up
    to, but not including, (r + 1) * experts / n. All ranks call this at the same time.

    `exchange_counts(counts)` sends the number of rows for each expert, int64 (experts), and returns int64 (n, experts / n): how
    many rows each rank will send for each expert of this one.
    `exchange` is for your AllToAll. All ranks call it equally often.
    `compute(rows, sizes)` returns the output for rows that are sorted by this rank's experts: the first sizes[0] rows are for
    its first expert, and so on.

    A row goes only to the rank of its expert, once for each pair of token and expert. In the backward pass all ranks use
    every exchange again, so the result has to depend on what came back, even on a rank without tokens.
    """
    raise NotImplementedError("forward: in which order do rows arrive, and in which does compute need them?")
