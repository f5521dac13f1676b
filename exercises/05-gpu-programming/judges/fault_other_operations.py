"""Judge a repaired copy of fused_norm.py: it must count the operations that a GPU runs."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from gpucourse.judge import Part, Way

ROWS, COLUMNS, P = 64, 256, 0.25
WAYS = {
    "still": Way(
        "{operations} operations move {times:.2f} times the bytes of x: a GPU runs two kernels, which move 4.25 times the bytes"
    ),
    "no-mask": Way(
        "without its mask of a byte per number, dropout would have no backward pass: both move 4.25 times the bytes of x"
    ),
}


class Counter(TorchDispatchMode):
    """Count operations, and the bytes that they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.operations, self.bytes = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one operation of torch."""
        results = function(*args, **(kwargs or {}))
        self.operations += 1
        self.bytes += sum(item.nbytes for item in tree_iter((args, kwargs, results)) if isinstance(item, torch.Tensor))
        return results


def judge(part: Part) -> None:
    """Judge the bytes that the copy's `eager` moves."""
    eager = part.function_alone("eager", torch=torch, EPS=1e-5)
    x, weight, bias = torch.randn(ROWS, COLUMNS), torch.rand(COLUMNS), torch.rand(COLUMNS)
    with Counter() as counter:
        part.call(eager, x, weight, bias, P)
    times = counter.bytes / x.nbytes
    if times > 4.4:
        raise part.wrong("still", operations=counter.operations, times=times)
    if times < 4.2:
        raise part.wrong("no-mask")
    part.note(f"{counter.operations} operations, {times:.2f} times the bytes of x")
