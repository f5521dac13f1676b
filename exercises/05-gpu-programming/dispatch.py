"""Count the operations that a program asks torch for, on any device.

This uses two modes of torch. A dispatch mode sees each operation that reaches a backend, including those of backward and of
optimizers. A function mode sees calls from Python, such as `tolist`, which reads a CPU tensor without any operation.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

MATMULS = {"aten::mm": 0, "aten::addmm": 1, "aten::bmm": 0}  # and the position of the first of the two factors
LIBRARY = ("/torch/optim/", "/torch/amp/", "/torch/autograd/", "/torch/nn/", "/torch/utils/")
ATTRIBUTED = {"aten::_local_scalar_dense", "aten::lift_fresh", "aten::_to_copy", "aten::clone", "aten::copy_"}
COPIES = {"aten::clone": 0, "aten::_to_copy": 0, "aten::copy_": 1}  # and the position of the tensor that is copied
Caller = tuple[int | None, bool]  # the line that asked, and whether a library of torch asked for it
NOBODY: Caller = (None, False)
HALF = (torch.float16, torch.bfloat16)
READERS = ("tolist", "numpy", "__repr__")
CPU_CHECKS = ("one_hot",)  # reads its input on a CPU, to check the classes; on a GPU it does not


@dataclass(frozen=True)
class Move:
    """A copy of a tensor to another kind of device. `pinned`: the source is in page-locked memory, which the GPU can read."""

    bytes: int
    non_blocking: bool
    pinned: bool


class Reads(TorchFunctionMode):
    """Record Python calls that read values of a tensor on the CPU directly. `inside` is the call that is running."""

    def __init__(self, note: Callable[[], None]) -> None:
        super().__init__()
        self._note, self.inside = note, ""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle every function and method of torch."""
        name = getattr(function, "__name__", "")
        if name in READERS:
            self._note()
        enclosing, self.inside = self.inside, name
        try:
            return function(*args, **(kwargs or {}))
        finally:
            self.inside = enclosing


class Operations(TorchDispatchMode):
    """Count the operations that the code inside the `with` asks torch for.

    `operations`: number of all operations.
    `values_read`: numbers that the program's own lines read from a tensor. Reads by torch's optimizers and scalers do not
    count.
    `from_python`: tensors built from Python numbers.
    `float64_results`: results in 64 bits.
    `moves`: copies between devices.
    `flop` and `half_flop`: the operations of all matrix products, and of those with 16-bit factors.
    `flop_of_type`: the operations of matrix products by the type of the first factor.
    `weight_copies`: copies of a parameter of `model`, once `model` is set.
    `lines`: operations by line of `file`, if `file` is set. Operations of the libraries that a line calls do not count.
    `lines_read` and `lines_built`: reads, and tensors built from Python numbers, by line of `file`.
    """

    def __init__(self, file: str = "") -> None:
        super().__init__()
        self.file = file
        self.operations = self.values_read = self.from_python = self.float64_results = 0
        self.flop = self.half_flop = self.weight_copies = 0
        self.flop_of_type: Counter[torch.dtype] = Counter()
        self.moves: list[Move] = []
        self.lines: Counter[int] = Counter()
        self.lines_read: Counter[int] = Counter()
        self.lines_built: Counter[int] = Counter()
        self.model: nn.Module | None = None
        self._reads = Reads(self._note_read)

    def __enter__(self) -> Self:
        """Begin to count."""
        self._reads.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop counting."""
        super().__exit__(*error)
        self._reads.__exit__(*error)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle every operation."""
        name = function.name().partition(".")[0]
        caller = _find_caller(self.file) if self.file or name in ATTRIBUTED else NOBODY
        self.operations += 1
        self._count_line(self.lines, caller)
        if name == "aten::_local_scalar_dense":
            self._note_read(caller)
        elif name == "aten::lift_fresh" and not caller[1]:
            self.from_python += 1
            self._count_line(self.lines_built, caller)
        elif name in MATMULS:
            self._count_product(*args[MATMULS[name] : MATMULS[name] + 2])
        if name == "aten::_to_copy":
            self._note_move(args[0], kwargs or {}, caller)
        if self.model is not None and name in COPIES:
            self._note_copy(args[COPIES[name]], caller)
        result = function(*args, **(kwargs or {}))
        if any(isinstance(tensor, torch.Tensor) and tensor.dtype is torch.float64 for tensor in tree_iter(result)):
            self.float64_results += 1
        return result

    def _count_line(self, lines: Counter[int], caller: Caller) -> None:
        line, of_library = caller
        if line and not of_library:
            lines[line] += 1

    def _note_read(self, caller: Caller | None = None) -> None:
        caller = caller or _find_caller(self.file)
        if self._reads.inside not in CPU_CHECKS and not caller[1]:
            self.values_read += 1
            self._count_line(self.lines_read, caller)

    def _note_move(self, tensor: torch.Tensor, options: dict[str, Any], caller: Caller) -> None:
        device = options.get("device")
        if device is None or torch.device(device).type == tensor.device.type or caller[1]:
            return
        pinned = tensor.device.type == "cpu" and torch.cuda.is_available() and tensor.is_pinned()
        self.moves.append(Move(tensor.numel() * tensor.element_size(), bool(options.get("non_blocking")), pinned))

    def _note_copy(self, tensor: torch.Tensor, caller: Caller) -> None:
        if not caller[1] and any(tensor.data_ptr() == weight.data_ptr() for weight in self.model.parameters()):
            self.weight_copies += 1

    def _count_product(self, first: torch.Tensor, second: torch.Tensor) -> None:
        flop = 2 * first.numel() * second.shape[-1]
        self.flop += flop
        self.flop_of_type[first.dtype] += flop
        self.half_flop += flop * (first.dtype in HALF and second.dtype in HALF)


def _find_caller(file: str) -> Caller:
    """Return the line of `file` that asked for the running operation, or None, and whether one of torch's own libraries asked
    for it (an optimizer, a scaler, backward, a layer)."""
    frame, of_library = inspect.currentframe(), False
    while frame is not None:
        name = frame.f_code.co_filename
        if name == file:
            return frame.f_lineno, of_library
        of_library = of_library or any(folder in name for folder in LIBRARY)
        frame = frame.f_back
    return None, of_library
