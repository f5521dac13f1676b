"""Count the bytes that torch's operations read and write: every operand once, every result once, views not at all.

Bytes that stay in a cache between two operations are counted, too: the count is of a program's requests, not of the memory's
work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

NOTHING_READ = ("copy_", "fill_", "zero_", "normal_", "uniform_")  # in-place operations that only write the tensor itself


class ByteCounter(TorchDispatchMode):
    """Count bytes inside a `with`: `read`, `written` and their sum `total`, and the number of `operations`."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = self.operations = 0

    @property
    def total(self) -> int:
        """Return the bytes read and written."""
        return self.read + self.written

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count the bytes of every operation."""
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if _makes_view(function) or name.startswith(("empty", "new_empty")):
            return result
        reads, writes = [], []
        for argument, value in _pair_arguments(function, args, kwargs or {}):
            is_written = argument.alias_info is not None and argument.alias_info.is_write
            only_written = is_written and (argument.name != "self" or name in NOTHING_READ)
            tensors = [item for item in tree_iter(value) if isinstance(item, torch.Tensor)]
            writes += tensors if is_written else []
            reads += [] if only_written else tensors
        new = [item for item in tree_iter(result) if isinstance(item, torch.Tensor) and not _is_among(item, writes)]
        self.operations += 1
        self.read += sum(map(count_bytes, reads))
        self.written += sum(map(count_bytes, [*writes, *new]))
        return result


def count_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's numbers, and of a sparse tensor's indices. Numbers repeated by `expand` count once."""
    if tensor.layout is torch.sparse_csr:
        return sum(count_bytes(of_it) for of_it in (tensor.crow_indices(), tensor.col_indices(), tensor.values()))
    numbers = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        numbers *= size if stride or not size else 1
    return numbers * tensor.element_size()


def _makes_view(function: Any) -> bool:
    returned = [value.alias_info for value in function._schema.returns]  # noqa: SLF001 (torch has no other way to ask)
    return any(alias is not None and not alias.is_write for alias in returned)


def _pair_arguments(function: Any, args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each argument of the operation's schema with its value. Arguments that were not passed are left out."""
    parameters = function._schema.arguments  # noqa: SLF001
    yield from zip(parameters, args, strict=False)
    yield from ((argument, kwargs[argument.name]) for argument in parameters if argument.name in kwargs)


def _is_among(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> bool:
    return any(tensor is candidate for candidate in tensors)
