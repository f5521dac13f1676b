"""Count the loads and stores of a Triton kernel in the interpreter, and the bytes that PyTorch's operations read and write.

The interpreter runs a kernel program by program with NumPy. For every load and store it has a block of addresses and a mask. A
`KernelMemory` checks both before they are used. Neither a GPU nor the interpreter complains about a load outside a tensor: both
read whatever is there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

NO_PROGRAM, SEVERAL = -1, -2
OWNER, UNDEFINED = "tensor of the pointer", "undefined lanes"  # marks of the interpreter's values
FROM_POINTER = (
    "create_addptr", "create_splat", "create_unsplat", "create_broadcast", "create_expand_dims", "create_reshape",
    "create_trans", "create_bitcast", "ternary_op",
)  # fmt: skip
MOVES: dict[str, Callable[..., np.ndarray]] = {  # operations that only move lanes
    "create_broadcast": np.broadcast_to,
    "create_expand_dims": np.expand_dims,
    "create_trans": np.transpose,
    "create_reshape": lambda flags, shape, *_: flags.reshape(shape),
}
LANE_BY_LANE = (
    "unary_op", "binary_op", "ternary_op", "cast_impl", "create_fp_to_fp", "create_idiv", "create_fma", "create_fabs", *MOVES,
)  # fmt: skip


class KernelFault(RuntimeError):
    """A kernel uses memory incorrectly. The message begins with the file and the line of the kernel."""

    kind = "fault"


class OutsideTensors(KernelFault):
    """An unmasked lane uses an address outside the tensor that its pointer came from."""

    kind = "out of bounds"


class Race(KernelFault):
    """Two programs, or two lanes of a program, use the same number, at least one stores it, and nothing orders them."""

    kind = "race"


class StoredTwice(Race):
    """Two programs, or two lanes of a program, store to the same address. They run in any order, so either store may win."""


class StoredUndefined(KernelFault):
    """A kernel stores a lane that a masked load without `other` left undefined."""

    kind = "undefined value"


@dataclass
class Traffic:
    """Bytes moved between a kernel and one tensor. `distinct_*` counts every address once, however often it was used.

    `is_element` says for each number between the tensor's first and last whether it belongs to the tensor: a tensor with
    strides has gaps.
    """

    name: str
    first: int
    itemsize: int
    is_element: np.ndarray = field(repr=False)
    loaded_bytes: int = 0
    stored_bytes: int = 0
    loaded: np.ndarray = field(init=False, repr=False)
    stored: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.loaded, self.stored = np.zeros_like(self.is_element), np.zeros_like(self.is_element)

    @property
    def numbers(self) -> int:
        return int(self.is_element.size)

    @property
    def end(self) -> int:
        """Return the first address after the tensor."""
        return self.first + self.numbers * self.itemsize

    @property
    def distinct_loaded_bytes(self) -> int:
        return int(self.loaded.sum()) * self.itemsize

    @property
    def distinct_stored_bytes(self) -> int:
        return int(self.stored.sum()) * self.itemsize


@dataclass
class Region:
    """Memory of one launch that one tensor, or several overlapping tensors, occupy: who used each of its numbers last.

    `loaded_by`, `stored_by` and `changed_by` (by an atomic operation) have the number of a program, NO_PROGRAM or SEVERAL.
    `stored_from` has the lane of the last store.
    """

    first: int
    end: int
    itemsize: int
    loaded_by: np.ndarray = field(init=False, repr=False)
    stored_by: np.ndarray = field(init=False, repr=False)
    changed_by: np.ndarray = field(init=False, repr=False)
    stored_from: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        size = -(-(self.end - self.first) // self.itemsize)
        self.loaded_by, self.stored_by, self.changed_by, self.stored_from = (np.full(size, NO_PROGRAM) for _ in range(4))


def make_traffic(name: str, tensor: torch.Tensor) -> Traffic:
    """Return the empty traffic of a tensor."""
    numbers = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    is_element = torch.zeros(numbers, dtype=torch.bool)
    is_element.as_strided(tensor.shape, tensor.stride()).fill_(True)
    return Traffic(name, tensor.data_ptr(), tensor.element_size(), is_element.numpy())


def make_regions(tensors: Sequence[Traffic]) -> list[Region]:
    """Return the regions that the tensors of a launch occupy."""
    regions: list[Region] = []
    spans: list[tuple[int, int, int]] = []
    for item in sorted(tensors, key=lambda item: item.first):
        if spans and item.first < spans[-1][1]:
            first, end, itemsize = spans.pop()
            spans.append((first, max(end, item.end), min(itemsize, item.itemsize)))
        else:
            spans.append((item.first, item.end, item.itemsize))
    regions += [Region(*span) for span in spans]
    return regions


def list_tensors(name: str, argument: Any) -> Iterator[tuple[str, Any, torch.Tensor]]:
    """Yield the name, the object that a kernel receives, and the tensor, for each tensor of an argument.

    Such a tensor is the argument itself, an item of a tuple, or the base of a descriptor.
    """
    if isinstance(argument, tuple):
        for place, item in enumerate(argument):
            yield from list_tensors(f"{name}[{place}]", item)
    elif isinstance(argument, torch.Tensor):
        yield name, argument, argument
    elif isinstance(base := getattr(argument, "base", None), torch.Tensor):  # a TensorDescriptor or a TensorWrapper
        yield name, argument if hasattr(argument, "data_ptr") else base, base


def find_place(files: tuple[str, ...]) -> str:
    """Return the file and line that run now, without those of Triton and of `files`: `my_norm.py:33`."""
    triton = sys.modules.get("triton")
    library = f"{Path(str(triton.__file__)).parent}{os.sep}" if triton else __file__
    frame = sys._getframe(1)  # noqa: SLF001 (the public way, inspect.stack, reads every source file)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*files, library)):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def mend_numbers(interpreter: Any, version: str) -> None:
    """Let the bound of a `range` be a number that a kernel computed.

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
    """Count the loads and stores of `@triton.jit` functions that run in the interpreter inside a `with`.

    `tensors` has the traffic of each tensor, over all launches, by the name of the kernel's parameter,
    and `atomic_bytes` what atomic operations changed. Raises a KernelFault:

    - OutsideTensors if a pointer leaves the tensor that it came from.
    - StoredTwice if two programs of a launch, or two lanes of a program, store to the same number.
    - Race if a program loads a number that another one stores. Atomic operations may change the same number. After an atomic
      operation on integers, such as a lock's, the accesses of a program are not compared with those of other programs.
    - StoredUndefined if a lane is stored that a masked load without `other` left undefined. Operations that combine lanes, such
      as sums and products of matrices, are not followed.

    `files` has the files of this class and its subclasses. A fault has a line of another file.
    """

    files: tuple[str, ...] = (__file__,)

    def __init__(self, *kernels: Any) -> None:
        self.hooks = [(kernel, partial(self._learn_tensors, kernel.arg_names)) for kernel in kernels]
        self.tensors: dict[str, Traffic] = {}
        self.atomic_bytes = 0
        self._now: list[Traffic] = []
        self._regions: list[Region] = []
        self._by_argument: dict[int, tuple[Any, Traffic]] = {}  # keeps the argument, so that its id is not reused
        self._ordered_program = NO_PROGRAM

    def __enter__(self) -> KernelMemory:  # noqa: PYI034 (nodes may have Python 3.10, which has no Self)
        import triton
        from triton.runtime import interpreter

        mend_numbers(interpreter, triton.__version__)
        self._builder = builder = interpreter.interpreter_builder
        self._patches: list[tuple[Any, str, Any]] = []
        for name in FROM_POINTER:
            self._patch(builder, name, follow_owner)
        for name in LANE_BY_LANE:
            self._patch(builder, name, partial(follow_undefined, move=MOVES.get(name)))
        for kind in (interpreter.BlockPointerHandle, interpreter.TensorDescHandle):
            self._patch(kind, "materialize_pointers", follow_base)
        self._patch(interpreter, "_implicit_cvt", self._wrap_convert)
        self._patch(builder, "create_masked_load", self._wrap_load)
        self._patch(builder, "create_masked_store", self._wrap_store)
        self._patch(builder, "create_atomic_rmw", self._wrap_atomic)
        self._patch(builder, "create_atomic_cas", self._wrap_exchange)
        self._patch(builder, "create_barrier", self._wrap_barrier)
        for kernel, hook in self.hooks:
            kernel.add_pre_run_hook(hook)
        return self

    def _patch(self, holder: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Wrap a function of a module, a class or an object until the end of the `with`. An older Triton lacks some of them."""
        if (call := getattr(holder, name, None)) is not None:
            self._patches.append((holder, name, vars(holder).get(name)))
            setattr(holder, name, wrap(call))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for kernel, hook in self.hooks:
            kernel.pre_run_hooks.remove(hook)
        while self._patches:
            holder, name, original = self._patches.pop()
            if original is None:
                delattr(holder, name)  # the attribute of the class is visible again
            else:
                setattr(holder, name, original)

    def loaded_bytes(self, *, distinct: bool = False) -> int:
        """Return the bytes loaded from all tensors. With `distinct`, each address counts once."""
        return sum(item.distinct_loaded_bytes if distinct else item.loaded_bytes for item in self.tensors.values())

    def stored_bytes(self, *, distinct: bool = False) -> int:
        """Return the bytes stored to all tensors. With `distinct`, each address counts once."""
        return sum(item.distinct_stored_bytes if distinct else item.stored_bytes for item in self.tensors.values())

    def report_fault(self, fault: KernelFault) -> None:
        """Raise a fault. A subclass may collect faults instead, except OutsideTensors: such an access can end the process."""
        raise fault

    def _learn_tensors(self, names: Sequence[str], *arguments: Any, **kwargs: Any) -> None:
        """Store the tensors of a launch. The interpreter calls this before each launch, with the kernel's arguments."""
        by_name = dict(zip(names, arguments, strict=False)) | kwargs
        self._now, self._by_argument, self._ordered_program = [], {}, NO_PROGRAM
        for argument_name, argument in by_name.items():
            for name, item, tensor in list_tensors(argument_name, argument):
                if tensor.numel():
                    traffic = make_traffic(name, tensor)
                    if (earlier := self.tensors.get(name)) is not None:
                        traffic.loaded_bytes, traffic.stored_bytes = earlier.loaded_bytes, earlier.stored_bytes
                    self.tensors[name] = traffic
                    self._by_argument[id(item)] = item, traffic
                    self._now.append(traffic)
        self._regions = make_regions(self._now)

    def _wrap_convert(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of `call`, which converts an argument to a pointer. The wrapper also records on the pointer which
        tensor it points to."""

        def convert(argument: Any) -> Any:
            result = call(argument)
            if id(argument) in self._by_argument:
                result.handle.attr[OWNER] = self._by_argument[id(argument)][1]
            return result

        return convert

    def _wrap_load(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def check_and_load(pointers: Any, mask: Any, other: Any, *arguments: Any, **keywords: Any) -> Any:
            active = self._select_lanes(pointers, mask)
            self._share_out(pointers, active, self._note_load, "loads")
            result = call(pointers, mask, other, *arguments, **keywords)
            if other is None and not active.all():
                result.attr[UNDEFINED] = ~active
            return result

        return check_and_load

    def _wrap_store(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def check_and_store(pointers: Any, value: Any, mask: Any, *arguments: Any, **keywords: Any) -> Any:
            active = self._select_lanes(pointers, mask)
            values = np.broadcast_to(value.data, active.shape)[active]
            self._share_out(pointers, active, partial(self._note_store, values=values), "stores")
            self._check_defined(value, active)
            return call(pointers, value, mask, *arguments, **keywords)

        return check_and_store

    def _wrap_atomic(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call`, changed to count an atomic operation as a load and a store.

        Several programs may change the same number in this way.
        """

        def check_and_change(operation: Any, pointers: Any, value: Any, mask: Any, *arguments: Any) -> Any:
            active = self._select_lanes(pointers, mask)
            self._share_out(pointers, active, self._note_atomic, "changes")
            self._check_defined(value, active)
            if operation.name != "FADD":
                self._ordered_program = self._program_number()
            return call(operation, pointers, value, mask, *arguments)

        return check_and_change

    def _wrap_exchange(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call`, changed to count a compare-and-swap as an atomic operation."""

        def check_and_exchange(pointers: Any, *arguments: Any) -> Any:
            self._share_out(pointers, self._select_lanes(pointers, None), self._note_atomic, "changes")
            self._ordered_program = self._program_number()
            return call(pointers, *arguments)

        return check_and_exchange

    def _wrap_barrier(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call`, changed so that another lane may store a number again after a barrier."""

        def forget_lanes(*arguments: Any) -> Any:
            for region in self._regions:
                region.stored_from.fill(NO_PROGRAM)
            return call(*arguments)

        return forget_lanes

    def _select_lanes(self, pointers: Any, mask: Any) -> np.ndarray:
        """Return which lanes take part, in the shape of the pointers. The mask is an array, or an object with one in `data`."""
        return np.broadcast_to(True if mask is None else getattr(mask, "data", mask), pointers.data.shape).astype(bool)

    def _share_out(self, pointers: Any, active: np.ndarray, note: Callable[..., None], does: str) -> None:
        """Assign each address to the tensor that its pointer came from or, if that is not known, that contains it."""
        addresses, lanes = pointers.data[active].astype(np.int64), np.flatnonzero(active)
        owner = pointers.attr.get(OWNER)
        for traffic in self._now if owner is None else [owner]:
            if not addresses.size:
                return
            numbers = (addresses - traffic.first) // traffic.itemsize
            is_inside = (numbers >= 0) & (numbers < traffic.numbers)
            is_inside[is_inside] = traffic.is_element[numbers[is_inside]]
            note(traffic, numbers[is_inside], lanes=lanes[is_inside])
            addresses, lanes = addresses[~is_inside], lanes[~is_inside]
        if addresses.size:
            self._complain(int(addresses[0]), does, owner)

    def _complain(self, address: int, does: str, owner: Traffic | None) -> None:
        if owner is None and not self._now:
            words = f"{does} an address, but no tensor was passed to the kernel"
        else:
            nearest = owner or min(self._now, key=lambda item: min(abs(address - item.first), abs(address - item.end)))
            number = (address - nearest.first) // nearest.itemsize
            words = f"{does} number {number:,} of {nearest.name}, "
            if 0 <= number < nearest.numbers:
                words += "which is in a gap between its numbers"
            else:
                words += f"which has the numbers 0 to {nearest.numbers - 1:,}"
        self.report_fault(OutsideTensors(f"{self._program_words()} {words}"))

    def _check_defined(self, value: Any, active: np.ndarray) -> None:
        is_undefined = value.attr.get(UNDEFINED)
        if is_undefined is None or not (is_stored := np.broadcast_to(is_undefined, active.shape) & active).any():
            return
        lane = int(np.flatnonzero(is_stored)[0])
        self.report_fault(StoredUndefined(
            f"{self._program_words()} stores lane {lane:,}, which a load masked out. Without other= such a lane has no value"
        ))  # fmt: skip

    def _program_words(self) -> str:
        return f"{find_place(self.files)}: program {tuple(int(place) for place in self._builder.grid_idx)}"

    def _program_number(self) -> int:
        (x, y, z), (_, ny, nz) = self._builder.grid_idx, self._builder.grid_dim
        return int((x * ny + y) * nz + z)

    def _find_region(self, traffic: Traffic, numbers: np.ndarray) -> tuple[Region, np.ndarray]:
        """Return the region of a tensor, and the places of the tensor's numbers in it."""
        region = next(item for item in self._regions if item.first <= traffic.first < item.end)
        return region, (traffic.first - region.first + numbers * traffic.itemsize) // region.itemsize

    def _find_foreign(self, users: np.ndarray) -> np.ndarray:
        """Return which of the last users are other programs whose accesses are not ordered before those of this one."""
        program = self._program_number()
        return (users != NO_PROGRAM) & (users != program) & (self._ordered_program != program)

    def _note_load(self, traffic: Traffic, numbers: np.ndarray, *, lanes: np.ndarray) -> None:  # noqa: ARG002 (as the others)
        region, places = self._find_region(traffic, numbers)
        is_foreign = self._find_foreign(region.stored_by[places]) | self._find_foreign(region.changed_by[places])
        if is_foreign.any():
            self._report_race(Race, "loads", traffic, numbers[is_foreign][0], "which another program stores")
        self._count_load(traffic, numbers)
        users = region.loaded_by[places]
        program = self._program_number()
        region.loaded_by[places] = np.where((users == NO_PROGRAM) | (users == program), program, SEVERAL)

    def _note_store(
        self, traffic: Traffic, numbers: np.ndarray, *, lanes: np.ndarray, values: np.ndarray | None = None
    ) -> None:
        region, places = self._find_region(traffic, numbers)
        users, program = region.stored_by[places], self._program_number()
        is_foreign = self._find_foreign(users) | self._find_foreign(region.changed_by[places])
        is_loaded = self._find_foreign(region.loaded_by[places])
        is_moved = (users == program) & (region.stored_from[places] != NO_PROGRAM) & (region.stored_from[places] != lanes)
        if is_foreign.any():
            number = numbers[is_foreign][0]
            self._report_race(StoredTwice, "stores", traffic, number, "which another program has stored before")
        elif is_loaded.any():
            self._report_race(Race, "stores", traffic, numbers[is_loaded][0], "which another program loads")
        elif (number := find_repeated(numbers, values)) is not None:
            self._report_race(StoredTwice, "stores", traffic, number, "from two lanes at once")
        elif is_moved.any():
            number = numbers[is_moved][0]
            self._report_race(StoredTwice, "stores", traffic, number, "which another lane of the program has stored before")
        region.stored_by[places], region.stored_from[places] = program, lanes
        traffic.stored[numbers] = True
        traffic.stored_bytes += int(numbers.size) * traffic.itemsize

    def _note_atomic(self, traffic: Traffic, numbers: np.ndarray, *, lanes: np.ndarray) -> None:  # noqa: ARG002 (as the others)
        region, places = self._find_region(traffic, numbers)
        is_foreign = self._find_foreign(region.stored_by[places])
        if is_foreign.any():
            words = "which another program stores without an atomic operation"
            self._report_race(Race, "changes", traffic, numbers[is_foreign][0], words)
        region.changed_by[places] = self._program_number()
        self._count_load(traffic, numbers)
        traffic.stored[numbers] = True
        traffic.stored_bytes += int(numbers.size) * traffic.itemsize
        self.atomic_bytes += int(numbers.size) * traffic.itemsize

    def _count_load(self, traffic: Traffic, numbers: np.ndarray) -> None:
        traffic.loaded[numbers] = True
        traffic.loaded_bytes += int(numbers.size) * traffic.itemsize

    def _report_race(self, kind: type[Race], does: str, traffic: Traffic, number: int, words: str) -> None:
        self.report_fault(kind(f"{self._program_words()} {does} number {number:,} of {traffic.name}, {words}"))


def find_repeated(numbers: np.ndarray, values: np.ndarray | None) -> int | None:
    """Return a number that several lanes of one store write with different values, or None."""
    order = np.argsort(numbers, kind="stable")
    is_same = numbers[order][1:] == numbers[order][:-1]
    if values is not None and values.size == numbers.size:
        is_same &= values[order][1:] != values[order][:-1]
    return int(numbers[order][1:][is_same][0]) if is_same.any() else None


def follow_owner(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an operation on pointers, so that its result belongs to the same tensor as the pointers."""

    def call_and_mark(*arguments: Any, **keywords: Any) -> Any:
        result = call(*arguments, **keywords)
        owners = [item.attr[OWNER] for item in arguments if OWNER in getattr(item, "attr", ())]
        if owners and all(owner is owners[0] for owner in owners):
            result.attr[OWNER] = owners[0]
        return result

    return call_and_mark


def follow_base(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method of a block pointer or a descriptor that makes pointers: they have the tensor of its base."""

    def make_and_mark(block: Any, *arguments: Any) -> Any:
        pointers, masks = call(block, *arguments)
        if OWNER in block.base.attr:
            pointers.attr[OWNER] = block.base.attr[OWNER]
        return pointers, masks

    return make_and_mark


def follow_undefined(call: Callable[..., Any], *, move: Callable[..., np.ndarray] | None) -> Callable[..., Any]:
    """Wrap an operation that computes lane by lane: a lane of its result is undefined if one that it needs is undefined.

    `move` moves the elements of an array as the operation moves lanes. It is None if the operation computes.
    """

    def call_and_mark(*arguments: Any, **keywords: Any) -> Any:
        result = call(*arguments, **keywords)
        handles = [item for item in arguments if hasattr(item, "attr")]
        if any(UNDEFINED in item.attr for item in handles):
            if move is None:
                result.attr[UNDEFINED] = find_undefined(handles, arguments[-1], result.data.shape)
            else:
                result.attr[UNDEFINED] = move(handles[0].attr[UNDEFINED], *arguments[1:])
        return result

    return call_and_mark


def find_undefined(handles: Sequence[Any], operation: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the undefined lanes of a result. A choice needs only the chosen side, and an `and` only a false one."""
    flags = [np.broadcast_to(item.attr.get(UNDEFINED, np.False_), shape) for item in handles]
    if operation is np.where:
        condition = np.broadcast_to(handles[0].data, shape)
        return np.asarray(flags[0] | np.where(condition, flags[1], flags[2]))
    is_logical = operation is np.bitwise_and or operation is np.bitwise_or
    if is_logical and handles[0].data.dtype == handles[1].data.dtype == np.bool_:
        decides = [(item.data == (operation is np.bitwise_or)) & ~flag for item, flag in zip(handles, flags, strict=True)]
        return np.asarray((flags[0] | flags[1]) & ~decides[0] & ~decides[1])
    return np.asarray(np.logical_or.reduce(flags))


class Operations(TorchDispatchMode):
    """Record PyTorch's operations inside a `with`, each with the bytes of its arguments and of its results.

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
