"""A block of four operations, and the tensors that each of them reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

NAMES = ("x", "weight", "bias", "gate")


def plain_block(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Return x + gelu(gate * layer norm of x): four operations, each of which reads and writes whole tensors."""
    h = nn.functional.layer_norm(x, x.shape[-1:], weight, bias)
    return x + nn.functional.gelu(gate * h, approximate="tanh")


def make_tensors(rows: int, width: int, device: torch.device) -> list[torch.Tensor]:
    """Return the tensors of `plain_block`, in the order of NAMES."""
    return [torch.ones(rows, width, device=device), *(torch.ones(width, device=device) for _ in NAMES[1:])]


@dataclass(frozen=True)
class Trace:
    """A trace of a computation.

    `operations` has, for each operation in order, the names of the tensors that it reads and of those that it writes.
    `bytes_of` has the bytes of each tensor, `results` the names of the results.
    """

    operations: list[tuple[list[str], list[str]]]
    bytes_of: dict[str, int]
    results: list[str]

    @property
    def bytes(self) -> int:
        """Return the bytes that all operations read and write if each is a separate kernel."""
        return sum(self.bytes_of[name] for reads, writes in self.operations for name in (*reads, *writes))


class Tracer(TorchDispatchMode):
    """Record which tensors each operation of torch reads and write. `names` has the names of the tensors so far."""

    def __init__(self, names: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.tensors, self.operations = dict(names), list[tuple[list[str], list[str]]]()

    def name(self, tensor: torch.Tensor) -> str:
        """Return the name of a tensor, a new one if it has none."""
        for name, other in self.tensors.items():
            if other.data_ptr() == tensor.data_ptr():
                return name
        name = f"t{len(self.tensors)}"
        self.tensors[name] = tensor
        return name

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record one operation."""
        results = function(*args, **(kwargs or {}))
        reads = [self.name(value) for value in tree_iter((args, kwargs)) if isinstance(value, torch.Tensor)]
        writes = [self.name(value) for value in tree_iter(results) if isinstance(value, torch.Tensor)]
        self.operations.append((reads, writes))
        return results


def trace(function: Callable[..., torch.Tensor], names: Sequence[str], tensors: Sequence[torch.Tensor]) -> Trace:
    """Run a function of named tensors, and return the operations that it calls."""
    tracer = Tracer(dict(zip(names, tensors, strict=True)))
    with torch.no_grad(), tracer:
        result = function(*tensors)
    sizes = {name: tensor.nbytes for name, tensor in tracer.tensors.items()}
    return Trace(tracer.operations, sizes, [tracer.name(result)])
