"""Measure a device's memory in three ways: held by tensors, kept by the framework, and in use according to the driver.

On a GPU, PyTorch's caching allocator and the driver report these. Without a GPU, a simulated device of a fixed size counts the
storages of all tensors that are created inside its `with` block, and raises the same torch.OutOfMemoryError. Like the caching
allocator, it keeps freed memory reserved until the cache is emptied. It can also let small tensors share segments, each of
which stays reserved as long as one of its tensors exists; it models no other fragments. Its context is a number of bytes that
are in use before the first tensor.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

ROUNDED = 512  # bytes: both allocators hand out multiples of it
MIB = 1 << 20
SMALL, SEGMENT = MIB, 2 * MIB  # bytes: the largest small tensor of PyTorch's allocator, and the segments that small ones share


class GpuMemory:
    """The first GPU's memory. Sizes are in bytes."""

    simulated = False

    def __init__(self) -> None:
        torch.cuda.init()
        torch.empty(1, device="cuda")  # makes the context, which takes its share before anything is counted
        torch.cuda.empty_cache()

    def __enter__(self) -> GpuMemory:  # noqa: PYI034 (Self is newer than Python 3.10)
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because nothing has to be undone."""

    def capacity(self) -> int:
        return torch.cuda.mem_get_info(0)[1]

    def allocated(self) -> int:
        return torch.cuda.memory_allocated(0)

    def reserved(self) -> int:
        return torch.cuda.memory_reserved(0)

    def used(self) -> int:
        free, total = torch.cuda.mem_get_info(0)
        return total - free

    def peak(self) -> int:
        return torch.cuda.max_memory_allocated(0)

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(0)

    def empty_cache(self) -> None:
        torch.cuda.empty_cache()


class SimulatedMemory(TorchDispatchMode):
    """A simulated device of `size` bytes, for the duration of a `with` block. `context` of them are in use from the start.

    With `has_segments`, tensors of at most SMALL bytes share segments.
    """

    simulated = True

    def __init__(self, size: int, context: int = 0, *, has_segments: bool = False) -> None:
        super().__init__()
        self._small = SMALL if has_segments else 0
        self._shared, self._filled, self._segments = 0, 0, 0  # bytes of small tensors; segments with one; reserved segments
        self._newest = [0]  # the bytes of the tensors in the newest segment
        self._size, self._context, self._live, self._kept, self._peak = size, context, 0, 0, 0
        self._known: dict[int, tuple[int, list[int] | None]] = {}

    def capacity(self) -> int:
        return self._size

    def allocated(self) -> int:
        return self._live

    def reserved(self) -> int:
        return self._kept + SEGMENT * self._segments

    def used(self) -> int:
        return self.reserved() + self._context

    def peak(self) -> int:
        return self._peak

    def reset_peak(self) -> None:
        self._peak = self._live

    def empty_cache(self) -> None:
        self._kept, self._segments = self._live - self._shared, self._filled

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count each storage that an operation returns for the first time."""
        result = function(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                self.count(tensor.untyped_storage())
        return result

    def count(self, storage: torch.UntypedStorage) -> None:
        """Count a new storage until it is freed. Raises torch.OutOfMemoryError if there is no room for it."""
        key = storage._cdata  # noqa: SLF001 (the one name that all views of a storage share)
        if key in self._known:
            return
        size = -(-storage.nbytes() // ROUNDED) * ROUNDED
        segment, needed = None, size
        if size <= self._small:
            segment = self._newest if self._newest[0] + size <= SEGMENT else [0]
            needed = 0 if segment[0] else SEGMENT
        free = self._size - self._context - (self._live - self._shared) - SEGMENT * self._filled
        if needed > free:
            raise torch.OutOfMemoryError(
                f"simulated device out of memory. Tried to allocate {size / MIB:.2f} MiB. The device has a total capacity of "
                f"{self._size / MIB:.2f} MiB of which {free / MIB:.2f} MiB is free."
            )
        self._live += size
        self._known[key] = (size, segment)
        if segment is not None:
            self._filled += segment[0] == 0
            self._segments = max(self._segments, self._filled)
            self._shared += size
            segment[0] += size
            self._newest = segment
        self._peak, self._kept = max(self._peak, self._live), max(self._kept, self._live - self._shared)
        weakref.finalize(storage, self._release, key)

    def _release(self, key: int) -> None:
        size, segment = self._known.pop(key, (0, None))
        self._live -= size
        if segment is not None:
            self._shared -= size
            segment[0] -= size
            self._filled -= segment[0] == 0
