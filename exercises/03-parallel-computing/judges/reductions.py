"""Watch the all-reduces of a rank and the steps of its backward pass, which a small model marks.

The result of an all-reduce is put into the caller's tensor only when the caller waits for it. So code that reads or changes a
gradient too early is always caught.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch import nn

WIDTH = 12


class Log:
    """The events of this rank, in order: `layer K`, `reduce N`, `wait N` or `future N`. `sizes`: the bytes of each all-reduce.

    `changed_early` says that a gradient was changed before its all-reduce had ended.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.sizes: list[int] = []
        self.works: list[Work] = []
        self.changed_early = False
        self._tensors: list[weakref.ref[torch.Tensor]] = []

    def restart(self) -> None:
        """Clear the record before another step, but remember which tensors were sent."""
        self._tensors += [weakref.ref(work.tensor) for work in self.works]
        self.events, self.works, self.sizes = [], [], []

    def count_kept(self) -> int:
        """Return how many of the tensors that were sent in any step still exist."""
        self.restart()
        gc.collect()
        return len({id(tensor) for reference in self._tensors if (tensor := reference()) is not None})

    @property
    def never_waited(self) -> int:
        """Return how many all-reduces were never waited for."""
        return sum(not work.done for work in self.works)


class Work:
    """The result of an all-reduce with async_op=True."""

    def __init__(self, log: Log, tensor: torch.Tensor, arguments: dict[str, Any]) -> None:
        self.log, self.tensor, self.number, self.done = log, tensor, len(log.works), False
        self.before, self.carried = tensor.detach().clone(), tensor.detach().clone()
        log.events.append(f"reduce {self.number}")
        log.sizes.append(tensor.nbytes)
        log.works.append(self)
        self.work = ORIGINAL(self.carried, **arguments, async_op=True)

    def wait(self, *_: Any, **__: Any) -> bool:
        """Wait for the all-reduce. Afterwards, the tensor contains the sum."""
        self.work.wait()
        self._land()
        return True

    def is_completed(self) -> bool:
        """Return whether the all-reduce has ended. If so, the tensor contains the sum."""
        return self.done or bool(self.work.is_completed() and self.wait())

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return a future of a list with the tensor, as torch does."""

        def land(_: Any) -> list[torch.Tensor]:
            self._land("future")  # no code of the part waited for it
            return [self.tensor]

        return self.work.get_future().then(land)

    def _land(self, event: str = "wait") -> None:
        if self.done:
            return
        self.done = True
        self.log.events.append(f"{event} {self.number}")
        self.log.changed_early |= not torch.equal(self.tensor, self.before)
        self.tensor.detach().copy_(self.carried)


ORIGINAL = c10d.all_reduce


def watch(log: Log) -> None:
    """Record this process's all-reduces from now on. Call this before the learner's file is imported."""

    def all_reduce(tensor: torch.Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
        work = Work(log, tensor, {"op": op, "group": group})
        if async_op:
            return work
        work.wait()
        return None

    dist.all_reduce = c10d.all_reduce = all_reduce


class _Mark(torch.autograd.Function):
    """Do nothing in the forward pass. Record in the backward pass that the gradient has reached layer `number`."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, log: Log, number: int) -> torch.Tensor:
        context.log, context.number = log, number
        return x.clone()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        context.log.events.append(f"layer {context.number}")
        return gradients[0], None, None


class Net(nn.Module):
    """Five layers, one of which is used twice, a frozen layer, and a layer that no backward pass reaches."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(5))
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(requires_grad=False)
        self.unused = nn.Linear(WIDTH, WIDTH)
        self.double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of the layers, of which the second is used twice."""
        for number in (0, 1, 1, 2, 3, 4):
            x = _Mark.apply(torch.tanh(self.layers[number](x)), self.log, number)
        return self.frozen(x)
