"""Watches the all-reduces of a rank beside the steps of its backward pass, and a small model that marks these steps.

What an all-reduce gives is put into the caller's tensor only when it is waited for. So code that reads or changes a gradient
too early is wrong in every try and not only now and then.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch import nn

WIDTH = 12


class Log:
    """What happened on this rank, in order: `layer K`, `reduce N`, `wait N`; and what a gradient must not suffer meanwhile."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.works: list[Work] = []
        self.changed_early = False

    def restart(self) -> None:
        """Forget everything: another step begins."""
        self.events, self.works = [], []

    @property
    def never_waited(self) -> int:
        """How many all-reduces nobody waited for."""
        return sum(not work.done for work in self.works)


class Work:
    """What an all-reduce with async_op=True gives back."""

    def __init__(self, log: Log, tensor: torch.Tensor, arguments: dict[str, Any]) -> None:
        self.log, self.tensor, self.number, self.done = log, tensor, len(log.works), False
        self.before, self.carried = tensor.detach().clone(), tensor.detach().clone()
        log.events.append(f"reduce {self.number}")
        log.works.append(self)
        self.work = ORIGINAL(self.carried, **arguments, async_op=True)

    def wait(self, *_: Any, **__: Any) -> bool:
        """Wait for it: the tensor holds the sum now."""
        self.work.wait()
        self._land()
        return True

    def is_completed(self) -> bool:
        """Whether it is through; the tensor holds the sum then."""
        return self.done or bool(self.work.is_completed() and self.wait())

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return a future of the tensor in a list, as torch's own."""

        def land(_: Any) -> list[torch.Tensor]:
            self._land()
            return [self.tensor]

        return self.work.get_future().then(land)

    def _land(self) -> None:
        if self.done:
            return
        self.done = True
        self.log.events.append(f"wait {self.number}")
        self.log.changed_early |= not torch.equal(self.tensor, self.before)
        self.tensor.detach().copy_(self.carried)


ORIGINAL = c10d.all_reduce


def watch(log: Log) -> None:
    """From now on this process's all-reduces are seen. To be called before the learner's file is imported."""

    def all_reduce(tensor: torch.Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
        work = Work(log, tensor, {"op": op, "group": group})
        if async_op:
            return work
        work.wait()
        return None

    dist.all_reduce = c10d.all_reduce = all_reduce


class _Mark(torch.autograd.Function):
    """Nothing forward; backward says that the gradient has come as far as layer `number`."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, log: Log, number: int) -> torch.Tensor:
        context.log, context.number = log, number
        return x.clone()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        context.log.events.append(f"layer {context.number}")
        return gradients[0], None, None


class Net(nn.Module):
    """Five layers, of which one is used twice; a frozen one, and one that no backward reaches."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(5))
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(requires_grad=False)
        self.unused = nn.Linear(WIDTH, WIDTH)
        self.double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Every layer, the second one twice."""
        for number in (0, 1, 1, 2, 3, 4):
            x = _Mark.apply(torch.tanh(self.layers[number](x)), self.log, number)
        return self.frozen(x)
