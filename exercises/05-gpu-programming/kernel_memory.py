"""Count the loads and stores of a Triton kernel in the interpreter, and the bytes that PyTorch's operations read and write.

The interpreter runs a kernel program by program with NumPy. For every load and store it has a block of addresses and a mask. A
`KernelMemory` checks both before they are used. Neither a GPU nor the interpreter complains about a load outside a tensor: both
read whatever is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class OutsideTensors(IndexError):
    """An unmasked lane loads from, or stores to, an address outside the kernel's tensors."""


class StoredTwice(RuntimeError):
    """Two programs store to the same address. On a GPU, programs run in any order, so either store may win."""


@dataclass
class Traffic:
    """Bytes moved between a kernel and one tensor. `distinct_*` counts every address once, however often it was used."""

    name: str
    first: int
    itemsize: int
    numbers: int
    loaded_bytes: int = 0
    stored_bytes: int = 0
    loaded: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, bool))
    stored_by: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        self.loaded = np.zeros(self.numbers, bool)
        self.stored_by = np.full(self.numbers, -1, np.int64)

    @property
    def distinct_loaded_bytes(self) -> int:
        return int(self.loaded.sum()) * self.itemsize

    @property
    def distinct_stored_bytes(self) -> int:
        return int((self.stored_by >= 0).sum()) * self.itemsize


def mend_numbers(interpreter: Any, version: str) -> None:
    """Allow a number that a kernel computed as the bound of a `range`.

    Before Triton 3.7, such a number is an array with one element, which NumPy 2.4 no longer accepts as a number. Each torch
    comes with its own Triton: torch 2.11 with 3.6.
    """
    if tuple(map(int, version.split(".")[:2])) >= (3, 7) or hasattr(interpreter, "patch_of_triton"):
        return
    interpreter.patch_of_triton = patch = interpreter._patch_lang_tensor  # noqa: SLF001 (nothing public does it)

    def patch_and_mend(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda number: int(number.handle.data.item()))

    interpreter._patch_lang_tensor = patch_and_mend  # noqa: SLF001


class KernelMemory:
    """Counts the loads and stores of `@triton.jit` functions that run in the interpreter inside a `with`.

    `tensors` has the traffic of each tensor, over all launches, by the name of the kernel's parameter,
    and `atomic_bytes` what atomic operations changed. Raises OutsideTensors at
    a load or store outside the tensors, and StoredTwice if two programs of a launch store to the same number, unless both use
    atomic operations.
    """

    def __init__(self, *kernels: Any) -> None:
        self.hooks = [(kernel, partial(self._learn_tensors, kernel.arg_names)) for kernel in kernels]
        self.tensors: dict[str, Traffic] = {}
        self.atomic_bytes = 0
        self._now: list[Traffic] = []

    def __enter__(self) -> KernelMemory:  # noqa: PYI034 (nodes may have Python 3.10, which has no Self)
        import triton
        from triton.runtime import interpreter

        mend_numbers(interpreter, triton.__version__)
        self._builder = builder = interpreter.interpreter_builder
        self._load, self._store = builder.create_masked_load, builder.create_masked_store
        builder.create_masked_load = self._wrap_counting(self._load, self._note_load, mask_at=1)
        builder.create_masked_store = self._wrap_counting(self._store, self._note_store, mask_at=2)
        builder.create_atomic_rmw = self._wrap_atomic(builder.create_atomic_rmw)
        for kernel, hook in self.hooks:
            kernel.add_pre_run_hook(hook)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for kernel, hook in self.hooks:
            kernel.pre_run_hooks.remove(hook)
        del self._builder.create_masked_load, self._builder.create_masked_store  # those of the class are visible again
        del self._builder.create_atomic_rmw

    def loaded_bytes(self, *, distinct: bool = False) -> int:
        """Return the bytes loaded from all tensors. With `distinct`, each address counts once."""
        return sum(item.distinct_loaded_bytes if distinct else item.loaded_bytes for item in self.tensors.values())

    def stored_bytes(self, *, distinct: bool = False) -> int:
        """Return the bytes stored to all tensors. With `distinct`, each address counts once."""
        return sum(item.distinct_stored_bytes if distinct else item.stored_bytes for item in self.tensors.values())

    def _learn_tensors(self, names: Sequence[str], *arguments: Any, **kwargs: Any) -> None:
        """Store the tensors of a launch. The interpreter calls this before each launch, with the kernel's arguments."""
        by_name = dict(zip(names, arguments, strict=False)) | kwargs
        self._now = []
        for name, tensor in by_name.items():
            if isinstance(tensor, torch.Tensor) and tensor.numel():
                numbers = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
                traffic = Traffic(name, tensor.data_ptr(), tensor.element_size(), numbers)
                if (earlier := self.tensors.get(name)) is not None:
                    traffic.loaded_bytes, traffic.stored_bytes = earlier.loaded_bytes, earlier.stored_bytes
                self.tensors[name] = traffic
                self._now.append(traffic)

    def _wrap_counting(self, call: Callable[..., Any], note: Callable[..., None], *, mask_at: int) -> Callable[..., Any]:
        def count_and_call(pointers: Any, *arguments: Any) -> Any:
            on = np.broadcast_to(arguments[mask_at - 1].data, pointers.data.shape)
            self._share_out(pointers.data[on], note, "loads" if mask_at == 1 else "stores")
            return call(pointers, *arguments)

        return count_and_call

    def _wrap_atomic(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Count an atomic operation as a load and a store. Several programs may change the same number in this way."""

        def count_and_call(operation: Any, pointers: Any, value: Any, mask: Any, *arguments: Any) -> Any:
            on = np.broadcast_to(mask.data, pointers.data.shape)
            self._share_out(pointers.data[on], self._note_atomic, "changes")
            return call(operation, pointers, value, mask, *arguments)

        return count_and_call

    def _share_out(self, addresses: np.ndarray, note: Callable[..., None], does: str) -> None:
        """Assign each address to the tensor that contains it. Most calls have only addresses of one tensor."""
        for traffic in self._now:
            offset = addresses.astype(np.int64) - traffic.first
            in_range = (offset >= 0) & (offset < traffic.numbers * traffic.itemsize)
            note(traffic, offset[in_range] // traffic.itemsize)
            addresses = addresses[~in_range]
            if not addresses.size:
                return
        self._complain(int(addresses[0]), does)

    def _complain(self, address: int, does: str) -> None:
        nearest = min(self._now, key=lambda item: min(abs(address - item.first), abs(address - item.first - item.numbers)))
        number = (address - nearest.first) // nearest.itemsize
        raise OutsideTensors(
            f"program {self._program_words()} {does} number {number:,} of {nearest.name}, which has the numbers 0 to "
            f"{nearest.numbers - 1:,}"
        )

    def _program_words(self) -> str:
        return str(tuple(int(place) for place in self._builder.grid_idx))

    def _program_number(self) -> int:
        (x, y, z), (_, ny, nz) = self._builder.grid_idx, self._builder.grid_dim
        return int((x * ny + y) * nz + z)

    def _note_load(self, traffic: Traffic, numbers: np.ndarray) -> None:
        traffic.loaded[numbers] = True
        traffic.loaded_bytes += int(numbers.size) * traffic.itemsize

    def _note_store(self, traffic: Traffic, numbers: np.ndarray) -> None:
        program_number = self._program_number()
        is_foreign = (traffic.stored_by[numbers] >= 0) & (traffic.stored_by[numbers] != program_number)
        if is_foreign.any():
            number = int(numbers[is_foreign][0])
            raise StoredTwice(
                f"program {self._program_words()} stores number {number:,} of {traffic.name}, which another program has "
                "stored before"
            )
        traffic.stored_by[numbers] = program_number
        traffic.stored_bytes += int(numbers.size) * traffic.itemsize

    def _note_atomic(self, traffic: Traffic, numbers: np.ndarray) -> None:
        self._note_load(traffic, numbers)
        traffic.stored_bytes += int(numbers.size) * traffic.itemsize
        self.atomic_bytes += int(numbers.size) * traffic.itemsize


class Operations(TorchDispatchMode):
    """Records PyTorch's operations inside a `with`, each with the bytes of its arguments and of its results.

    `rows` lists them in order. Views move nothing and are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), kwargs: Any = None) -> Any:
        results = operation(*arguments, **(kwargs or {}))
        read = [item for item in tree_iter((arguments, kwargs)) if isinstance(item, torch.Tensor)]
        tensors = [item for item in tree_iter(results) if isinstance(item, torch.Tensor)]
        if not operation.is_view:
            row = {"what": str(operation).split(".")[1]}
            self.rows.append(row | {"read_bytes": sum(item.nbytes for item in read),
                                    "written_bytes": sum(item.nbytes for item in tensors)})  # fmt: skip
        return results


def reason_of(error: BaseException) -> BaseException:
    """Return the original error, which the interpreter has wrapped in other errors."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
    return error
