"""Count a rank's collectives for judges, and the bytes passed to them. It replaces torch's functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

BRINGS = {  # the position of this rank's tensor among the arguments
    "all_reduce": 0, "broadcast": 0, "reduce": 0, "gather": 0, "send": 0, "isend": 0, "all_gather": 1,
    "all_gather_into_tensor": 1, "all_gather_single": 1, "reduce_scatter": 1, "reduce_scatter_tensor": 1,
    "reduce_scatter_single": 1, "scatter": 1, "all_to_all": 1, "all_to_all_single": 1,
}  # fmt: skip


@dataclass
class CollectiveCount:
    """The collectives since the last `clear`: the name of each, the bytes that this rank passed to it, and the types of the
    numbers."""

    calls: list[tuple[str, int]] = field(default_factory=list)
    types: set[str] = field(default_factory=set)

    @property
    def bytes(self) -> int:
        """Return the bytes of all calls together."""
        return sum(size for _, size in self.calls)

    def clear(self) -> None:
        """Start to count from zero again."""
        self.calls.clear()
        self.types.clear()


def count_collectives() -> CollectiveCount:
    """Replace torch's collectives with functions that count the calls, and return the count. Call this before the learner's
    file is imported, because that may import functions from torch.distributed by name."""
    import torch.distributed as dist

    counts = CollectiveCount()
    for name, place in BRINGS.items():
        if hasattr(dist, name):
            counting = _watch(counts, name, place, getattr(dist, name))
            for module in (dist, dist.distributed_c10d):
                setattr(module, name, counting)
    return counts


def _watch(counts: CollectiveCount, name: str, place: int, call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def count_call(*arguments: Any, **kwargs: Any) -> Any:
        tensors = arguments[place] if len(arguments) > place else next(iter(kwargs.values()), ())
        counts.types.update(str(tensor.dtype) for tensor in _tensors(tensors))
        counts.calls.append((name, sum(tensor.numel() * tensor.element_size() for tensor in _tensors(tensors))))
        return call(*arguments, **kwargs)

    return count_call


def _tensors(value: Any) -> Iterator[Any]:
    if hasattr(value, "element_size"):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
