"""What a program asks of torch, operation by operation: counted where every call passes, on any device.

Two modes of torch do it. A dispatch mode sees each operation that reaches a backend, also those of backward and of an
optimizer; a function mode sees the calls of Python, such as `tolist`, which reads a tensor on the CPU without any operation.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

MATMULS = {"aten::mm": 0, "aten::addmm": 1, "aten::bmm": 0}  # and where the first of the two factors stands
LIBRARY = ("/torch/optim/", "/torch/amp/")
HALF = (torch.float16, torch.bfloat16)
READERS = ("tolist", "numpy")


@dataclass(frozen=True)
class Move:
    """A copy of a tensor to another kind of device. `pinned`: from memory that the GPU can read by itself."""

    bytes: int
    non_blocking: bool
    pinned: bool


class Reads(TorchFunctionMode):
    """Counts calls of Python that read values of a tensor on the CPU directly."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Every function and method of torch passes here."""
        self.count += getattr(function, "__name__", "") in READERS
        return function(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    """Counts what the code under it asks of torch.

    `operations`: all of them. `values_read`: a number taken out of a tensor by the program's own lines; what torch's optimizers
    and scalers read is theirs. `from_python`: tensors built from numbers of Python. `float64_results`: tensors of 64 bits.
    `moves`: copies between devices. `flop` and `half_flop`: of matrix products, all and those with factors of 16 bits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = self._numbers_read = self.from_python = self.float64_results = 0
        self.flop = self.half_flop = 0
        self.moves: list[Move] = []
        self._reads = Reads()

    @property
    def values_read(self) -> int:
        """How often the program looked at a value."""
        return self._numbers_read + self._reads.count

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
        """Every operation passes here."""
        name = function.name().partition(".")[0]
        self.operations += 1
        if name == "aten::_local_scalar_dense":
            self._numbers_read += not _is_of_library()
        elif name == "aten::lift_fresh":
            self.from_python += not _is_of_library()
        elif name == "aten::_to_copy":
            self._note_move(args[0], kwargs or {})
        elif name in MATMULS:
            self._count_product(*args[MATMULS[name] : MATMULS[name] + 2])
        result = function(*args, **(kwargs or {}))
        if any(isinstance(made, torch.Tensor) and made.dtype is torch.float64 for made in tree_iter(result)):
            self.float64_results += 1
        return result

    def _note_move(self, tensor: torch.Tensor, how: dict[str, Any]) -> None:
        device = how.get("device")
        if device is None or torch.device(device).type == tensor.device.type or _is_of_library():
            return
        pinned = tensor.device.type == "cpu" and torch.cuda.is_available() and tensor.is_pinned()
        self.moves.append(Move(tensor.numel() * tensor.element_size(), bool(how.get("non_blocking")), pinned))

    def _count_product(self, first: torch.Tensor, second: torch.Tensor) -> None:
        flop = 2 * first.numel() * second.shape[-1]
        self.flop += flop
        self.half_flop += flop * (first.dtype in HALF and second.dtype in HALF)


def _is_of_library() -> bool:
    """Whether an optimizer or a scaler of torch, and not the program itself, asked for the operation that is under way."""
    frame = inspect.currentframe()
    while frame is not None:
        if any(folder in frame.f_code.co_filename for folder in LIBRARY):
            return True
        frame = frame.f_back
    return False
