"""CUDA graphs, and their replacement without a GPU: a recording of operations and addresses.

`Graphs.capture(call)` runs `call` once and records its operations. `replay()` repeats them on the same memory, without the
model's Python.

On a GPU, this is torch.cuda.CUDAGraph. Without a GPU, a dispatch mode records each operation with its tensors. A replay
executes the operations on these very tensors and writes into their memory. So mistakes have the same consequences as on a GPU:
a replay does not see a new tensor, it overwrites the previous output, and it cannot read a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_iter, tree_map

WARM_UPS = 3  # before a capture: in the first calls, libraries allocate memory and choose their kernels


class CaptureError(RuntimeError):
    """The call cannot be captured, because it asks for a value before anything is computed."""


class Graphs:
    """Create graphs, and count captures, failed attempts and replays.

    `moved` counts the replays of a graph after one of its tensors was moved to other memory.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.captures, self.failures, self.replays, self.moved = device, 0, 0, 0, 0
        self.last: Graph | None = None  # the graph that was replayed last
        self.looks_at_addresses = True  # False while replays are timed: looking at every weight takes longer than a launch

    def capture(self, call: Callable[[], torch.Tensor]) -> Graph:
        """Return a graph of the operations of `call`. Raises CaptureError if they depend on a value."""
        try:
            with torch.no_grad(), Recorder() as recorder:
                output = call()
        except CaptureError:
            self.failures += 1
            raise
        self.captures += 1
        if self.device.type != "cuda":
            return Graph(self, recorder, output, recorder.replay)
        recorder.operations.clear()  # frees the memory of intermediate results as well; the addresses of tensors stay known
        graph, output = capture_on_gpu(call)
        return Graph(self, recorder, output, graph.replay)


class Graph:
    """A captured graph. `output` is the memory to which every replay writes its result."""

    def __init__(self, graphs: Graphs, recorder: Recorder, output: torch.Tensor, execute: Callable[[], None]) -> None:
        self._graphs, self._recorder, self._execute, self.output = graphs, recorder, execute, output

    def replay(self) -> None:
        """Repeat everything that was captured, on the same memory. On a GPU, this takes one launch."""
        self._graphs.replays += 1
        self._graphs.last = self
        if self._graphs.looks_at_addresses:
            self._graphs.moved += self._recorder.has_moved()
        self._execute()

    def list_memory(self) -> list[torch.Tensor]:
        """Return the memory outside the graph that every replay reads: weights and inputs."""
        return self._recorder.list_memory()


def capture_on_gpu(call: Callable[[], torch.Tensor]) -> tuple[Any, torch.Tensor]:
    """Return a torch.cuda.CUDAGraph of `call`, and its output. Warm up on a side stream first, as PyTorch's notes require."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        output = call()
    return graph, output


class Mode(TorchDispatchMode):
    """A dispatch mode for code that is not compiled. Torch then need not import its compiler, which saves a second."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Recorder(Mode):
    """Record every operation, and refuse an operation that reads a value.

    A capture on a GPU also begins with a recorder, because a failed capture leaves the GPU's allocator in a bad state.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self._outside: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # tensors from outside, each with its memory
        self._inside: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record every operation. Raises CaptureError at one that reads a value."""
        kwargs = kwargs or {}
        if reads_a_value(function, args):
            raise CaptureError("operation not permitted when stream is capturing")
        fixed_args, fixed_kwargs = tree_map(self._fix, args), tree_map(self._fix, kwargs)
        result = function(*args, **kwargs)
        self._inside |= {id(tensor) for tensor in list_tensors(result)}
        self.operations.append((function, fixed_args, fixed_kwargs, result))
        return result

    def _fix(self, value: Any) -> Any:
        """Return a tensor from outside with the memory that it has now, even if it gets other memory later."""
        if not isinstance(value, torch.Tensor) or id(value) in self._inside:
            return value
        if id(value) not in self._outside:
            self._outside[id(value)] = (value, value.detach())
        return self._outside[id(value)][1]

    def has_moved(self) -> bool:
        """Return whether a tensor from outside has moved to other memory since the capture."""
        return any(tensor.data_ptr() != memory.data_ptr() for tensor, memory in self._outside.values())

    def list_memory(self) -> list[torch.Tensor]:
        """Return the memory that tensors from outside had at the capture."""
        return [memory for _, memory in self._outside.values()]

    def replay(self) -> None:
        """Execute all operations on the tensors that they were captured with."""
        with torch.no_grad(), _disable_current_modes():
            for function, args, kwargs, result in self.operations:
                if is_view(function, args, kwargs, result):
                    continue  # it is a view of memory that another operation fills
                for old, new in zip(list_tensors(result), list_tensors(function(*args, **kwargs)), strict=True):
                    if old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class OperationCounter(Mode):
    """Count the operations that compute something. Views and empty tensors do not launch anything."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count every operation that computes something."""
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        empty = function.overloadpacket.__name__.startswith(("empty", "new_empty"))
        self.count += not (empty or is_view(function, args, kwargs, result))
        return result


def reads_a_value(function: Any, args: Any) -> bool:
    """Return whether the host must read values for this operation, for a number (item) or for the shape of the result
    (nonzero). An index needs its values if it is a mask."""
    if torch.Tag.data_dependent_output in function.tags:
        return True
    masked = any(tensor.dtype in (torch.bool, torch.uint8) for tensor in list_tensors(args[1:]))
    return torch.Tag.dynamic_output_shape in function.tags and (masked or not function.name().startswith("aten::index"))


def is_view(function: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Return whether an operation only returns views of its inputs' memory, without changing it."""
    if function._schema.is_mutable:  # noqa: SLF001 (no public name for it)
        return False
    addresses = {tensor.untyped_storage().data_ptr() for tensor in list_tensors((args, kwargs))}
    tensors = list_tensors(result)
    return bool(tensors) and all(tensor.untyped_storage().data_ptr() in addresses for tensor in tensors)


def list_tensors(tree: Any) -> list[torch.Tensor]:
    """Return every tensor in nested arguments or results."""
    return [value for value in tree_iter(tree) if isinstance(value, torch.Tensor)]
