"""Count the bytes that each rank of a divided model holds and sends, from tensors and collectives, and by torch's own rules.

Stage 1 of ZeRO divides the optimizer's state, stage 2 also the gradients, and stage 3 also the weights. Sizes are in bytes.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

KINDS = ("reduce_scatter", "all_gather", "all_reduce", "broadcast", "reduce", "send")
NUMBER = 4  # bytes of a float32


def take_local(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of the tensor. For a DTensor, this is its own shard."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def count_bytes(tensors: Iterable[torch.Tensor]) -> tuple[int, int]:
    """Return the bytes of this rank's numbers in these tensors, and of the memory behind them, which may contain padding."""
    tensors = list(tensors)
    local_tensors = [take_local(tensor) for tensor in tensors]
    storages = {storage.data_ptr(): storage.nbytes() for storage in (tensor.untyped_storage() for tensor in local_tensors)}
    return sum(tensor.numel() * tensor.element_size() for tensor in local_tensors), sum(storages.values())


def ring_times(kind: str, ranks: int) -> float:
    """Return the bytes that a rank sends in a ring for one collective, as a multiple of the whole tensor's, averaged over
    ranks.

    An all-reduce is a reduce-scatter and an all-gather. Each of them passes every part on to all ranks but one (module 3). A
    message from one rank to another is sent once.
    """
    if kind == "send":
        return 1.0
    return (2 if kind == "all_reduce" else 1) * (ranks - 1) / ranks


class SentBytes(TorchDispatchMode):
    """Counts, inside a `with`, the collectives among all `ranks`: how many of each kind, and the bytes of their tensors.

    `whole` has the bytes of the whole tensors for each kind of collective. After an all-gather or an all-reduce, every rank has
    the whole tensor; to a reduce-scatter, every rank passes a whole tensor. c10d's own operators are counted, whatever code
    calls them: DDP, FSDP, an optimizer.
    """

    def __init__(self, ranks: int) -> None:
        super().__init__()
        self.ranks = ranks
        self.calls: dict[str, int] = {}
        self.whole: dict[str, int] = {}

    @property
    def ring_bytes(self) -> float:
        """Return the bytes that a rank sends in rings, on average over the ranks."""
        return sum(ring_times(kind, self.ranks) * size for kind, size in self.whole.items())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function)
        result = function(*args, **(kwargs or {}))
        if "c10d" in name and not any(word in name for word in ("wait", "barrier", "recv")):
            self._count(name, sum(x.nbytes for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)))
        return result

    def _count(self, name: str, size: int) -> None:
        """Count a collective. `size` is the bytes of all tensors passed to the operator, inputs and outputs."""
        plain = name.replace("allgather", "all_gather").replace("allreduce", "all_reduce").replace("alltoall", "all_to_all")
        kind = next((kind for kind in KINDS if kind in plain), "other")
        if "all_to_all" in plain:  # input and output have equal sizes
            size //= 2
        if kind in {"reduce_scatter", "all_gather"}:
            if "functional" not in name:  # a whole tensor and a part
                size = size * self.ranks // (self.ranks + 1)
            elif kind == "all_gather":  # it gets only its part
                size *= self.ranks
        self.calls[kind] = self.calls.get(kind, 0) + 1
        self.whole[kind] = self.whole.get(kind, 0) + size


def read_written_bytes() -> int | None:
    """Return the bytes that this process has written to files and sockets, or None on systems other than Linux.

    gloo sends with `writev`, which Linux counts. NCCL does not, so its bytes are not seen.
    """
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def pad_numbers(shapes: Iterable[Sequence[int]], ranks: int) -> int:
    """Return how many numbers these parameters have after padding.

    Each is cut along its first dimension and padded so that all shards are equal.
    """
    return sum(math.ceil(shape[0] / ranks) * ranks * math.prod(shape[1:]) for shape in shapes)


def deal_tensors(shapes: Iterable[Sequence[int]], ranks: int) -> list[int]:
    """Return how many numbers each rank has if whole tensors are assigned, the largest first, each to the rank that has the
    fewest numbers.

    ZeroRedundancyOptimizer does so. If several ranks have the fewest, the first one gets the tensor.
    """
    dealt = [0] * ranks
    for numbers in sorted((math.prod(shape) for shape in shapes), reverse=True):
        dealt[dealt.index(min(dealt))] += numbers
    return dealt


def expect_memory(stage: int, shapes: Sequence[Sequence[int]], ranks: int, rank: int) -> dict[str, int]:
    """Return the bytes that torch allocates on this rank in float32 for weights in use, gradients, and AdamW's two moments."""
    numbers, padded = sum(math.prod(shape) for shape in shapes), pad_numbers(shapes, ranks)
    if stage < 2:
        return {
            "weights": NUMBER * numbers,
            "gradients": NUMBER * numbers,
            "moments": 2 * NUMBER * (numbers if stage == 0 else deal_tensors(shapes, ranks)[rank]),
        }
    rows = [(math.ceil(shape[0] / ranks), shape) for shape in shapes]
    own_numbers = sum(max(0, min(largest, shape[0] - rank * largest)) * math.prod(shape[1:]) for largest, shape in rows)
    return {
        "weights": NUMBER * padded if stage == 2 else NUMBER * padded // ranks,
        "gradients": NUMBER * padded // ranks,
        "moments": 2 * NUMBER * own_numbers,
    }


def expect_collectives(stage: int, shapes: Sequence[Sequence[int]], ranks: int) -> dict[str, int]:
    """Return the bytes of the whole tensors that torch passes to each kind of collective in a step."""
    size, padded = NUMBER * sum(math.prod(shape) for shape in shapes), NUMBER * pad_numbers(shapes, ranks)
    if stage == 0:
        return {"all_reduce": size}
    if stage == 1:  # all gradients to all ranks, then each rank's new weights to all others
        return {"all_reduce": size, "broadcast": size}
    return {"all_gather": (stage - 1) * padded, "reduce_scatter": padded}


def list_tensors(holder: object) -> list[torch.Tensor]:
    """Return the tensors that an object keeps in its attributes, lists, dictionaries and other objects, and their gradients."""
    tensors, visited, todo = [], set[int](), [holder]
    while todo:
        item = todo.pop()
        if id(item) in visited or isinstance(item, (type, ModuleType, FunctionType, BuiltinFunctionType)):
            continue
        visited.add(id(item))
        if isinstance(item, torch.Tensor):
            tensors += [item, *([item.grad] if item.is_leaf and item.grad is not None else [])]
        else:
            todo += gc.get_referents(item)
    return tensors


def count_kept_numbers(holder: object, apart_from: Iterable[torch.Tensor]) -> int:
    """Return how many floating-point numbers are in the tensors that an object keeps. Memory that they share with `apart_from`
    does not count."""
    shared_storages = {tensor.untyped_storage().data_ptr() for tensor in apart_from}
    storages = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() // tensor.element_size()
        for tensor in list_tensors(holder)
        if tensor.is_floating_point() and tensor.dim()
    }
    return sum(numbers for place, numbers in storages.items() if place not in shared_storages)


def explain_traffic(stage: int, shapes: Sequence[Sequence[int]], ranks: int) -> float:
    """Return the bytes that a rank sends with torch beyond those of the ZeRO paper.

    These are padding and, at stage 1, two collectives that are larger than necessary.
    """
    sent_bytes = sum(ring_times(kind, ranks) * size for kind, size in expect_collectives(stage, shapes, ranks).items())
    kinds = ("all_gather", "reduce_scatter", *(["all_gather"] if stage == 3 else []))
    return sent_bytes - sum(ring_times(kind, ranks) * NUMBER * sum(map(math.prod, shapes)) for kind in kinds)
