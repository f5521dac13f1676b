"""An all-to-all with any number of rows for each rank, which autograd can follow, and which counts what it sends.

exchange = Exchange(world.rank, world.size)
arrived = exchange(rows, send, receive)      # send[r] rows for rank r, receive[r] rows from rank r
arrived.sum().backward()                     # the gradients go back the same way
exchange.forward_bytes, exchange.backward_bytes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist


class Exchange:
    """An all-to-all among the ranks of a group.

    `forward_bytes` and `backward_bytes` list the bytes that this rank sent to other ranks, call by call: rows in the forward
    pass, and their gradients in the backward pass. Rows that stay on the rank do not count.
    """

    def __init__(self, rank: int, ranks: int, group: dist.ProcessGroup | None = None) -> None:
        """`rank` of `ranks` is this process in `group` (None: all ranks)."""
        self.rank, self.ranks, self.group = rank, ranks, group
        self.forward_bytes: list[int] = []
        self.backward_bytes: list[int] = []

    def __call__(self, rows: torch.Tensor, send: Sequence[int], receive: Sequence[int]) -> torch.Tensor:
        """Return the rows that arrive [sum of `receive`, ...]: first those from rank 0, then those from rank 1, and so on.

        The first send[0] of `rows` go to rank 0, the next send[1] to rank 1, and so on. All ranks of the group call this at the
        same time. Raise ValueError on every rank if the sizes do not fit together: gloo would end the processes instead.
        """
        self._check(rows, list(send), list(receive))
        arrived: torch.Tensor = _AllToAll.apply(rows, list(send), list(receive), self)
        return arrived

    def _check(self, rows: torch.Tensor, send: list[int], receive: list[int]) -> None:
        sizes = [*send, *receive, len(rows)]
        if len(send) != self.ranks or len(receive) != self.ranks or min(sizes) < 0:
            sizes = [-1] * (2 * self.ranks + 1)
        all_sizes = [torch.zeros(len(sizes), dtype=torch.int64, device=rows.device) for _ in range(self.ranks)]
        dist.all_gather(all_sizes, torch.tensor(sizes, dtype=torch.int64, device=rows.device), group=self.group)
        table = [sizes.tolist() for sizes in all_sizes]
        for rank, (*both, count) in enumerate(table):
            if count < 0:
                raise ValueError(f"rank {rank} needs {self.ranks} sizes to send and {self.ranks} to receive, none below 0")
            if count != sum(both[: self.ranks]):
                raise ValueError(f"rank {rank} has {count} rows, and its sizes to send add up to {sum(both[: self.ranks])}")
            for sender in range(self.ranks):
                if (sent_rows := table[sender][rank]) != (expected := both[self.ranks + sender]):
                    raise ValueError(f"rank {rank} expects {expected} rows from rank {sender}, which sends {sent_rows}")

    def send(self, rows: torch.Tensor, send: list[int], receive: list[int], counts: list[int]) -> torch.Tensor:
        """Return the rows that arrive, and append the bytes for other ranks to `counts`. Autograd does not follow this."""
        arrived = rows.new_empty(sum(receive), *rows.shape[1:])
        dist.all_to_all_single(arrived, rows.contiguous(), receive, send, group=self.group)
        leaving = sum(count for other, count in enumerate(send) if other != self.rank)
        counts.append(leaving * rows[:1].numel() * rows.element_size() if len(rows) else 0)
        return arrived


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, send: list[int], receive: list[int], exchange: Exchange) -> torch.Tensor:
        ctx.way = send, receive, exchange
        return exchange.send(rows, send, receive, exchange.forward_bytes)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        send, receive, exchange = ctx.way
        return exchange.send(gradient, receive, send, exchange.backward_bytes), None, None, None
