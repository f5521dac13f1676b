"""Judge my_e4m3.py of 8.6 with all 65,536 numbers of bfloat16 and many of float32, against torch's own float8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpucourse.judge import Part, Verdict, Way, plant_ways

WAYS = {
    "library": Way(
        "it converts to {dtype}, PyTorch's own type: write the conversion yourself",
        ("size = x.float().abs().clamp(max=448.0)", "return x.clamp(-448, 448).to(torch.float8_e4m3fn).float()"),
    ),
    "no-saturation": Way(
        "{x} became {result}. The largest number of the format is 448: larger numbers become 448, as there is no infinity",
        (".clamp(max=448.0)", ""),
    ),
    "largest-240": Way(
        "{x} became {result}: 240 is the largest number of another E4M3 (fnuz, of AMD's MI300). In this format, the largest "
        "exponent has numbers as well: 256, 288, ... 448",
        (".clamp(max=448.0)", ".clamp(max=240.0)"),
    ),
    "small-to-zero": Way(
        "{x} became {result}. Below 2**-6 there are still the multiples of 2**-9, {right} here: the format reaches 0 gradually",
        ("return torch.copysign", "size = torch.where(size < 2**-6, 0 * size, size)\n    return torch.copysign"),
    ),
    "steps-below-the-smallest": Way(
        "{x} became {result}, which is not a number of the format: its steps do not become smaller than 2**-9",
        ("exponent.clamp(min=-6)", "exponent.clamp(min=-60)"),
    ),
    "half-up": Way(
        "{x} is half way between two numbers of the format and became {result}. Such ties go to the number whose last bit is "
        "0: {right}",
        ("torch.round(size / step)", "torch.floor(size / step + 0.5)"),
    ),
    "cut-off": Way(
        "{x} became {result}, but {right} is nearer: round to the nearest number, do not cut off",
        ("torch.round(size / step)", "torch.floor(size / step)"),
    ),
    "two-bits": Way(
        "{x} became {result} instead of {right}: with 3 bits of fraction there are 8 numbers from one power of two to the next",
        ("clamp(min=-6) - 3)", "clamp(min=-6) - 2)"),
    ),
    "four-bits": Way(
        "{x} became {result}, which has four bits of fraction; the format has three, and its nearest number is {right}",
        ("clamp(min=-6) - 3)", "clamp(min=-6) - 4)"),
    ),
    "sign-lost": Way(
        "{x} became {result}: the sign is lost",
        ("return torch.copysign(torch.round(size / step) * step, x.float())", "return torch.round(size / step) * step"),
    ),
    "nan-lost": Way(
        "{x} became {result}. A NaN must stay NaN, or an error in a model becomes a plausible number",
        (
            "return torch.copysign(torch.round(size / step) * step",
            "return torch.copysign((torch.round(size / step) * step).nan_to_num()",
        ),
    ),
}


class Watcher(TorchDispatchMode):
    """Remembers the first 8-bit floating-point type that an operation returns."""

    dtype: torch.dtype | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of an operation, and note its type."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and str(result.dtype).startswith("torch.float8"):
            self.dtype = self.dtype or result.dtype
        return result


def list_numbers() -> Iterator[tuple[str, torch.Tensor]]:
    """Return the tested numbers, each set with a description."""
    patterns = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    yield "all numbers of bfloat16", patterns.float()
    source = torch.Generator().manual_seed(8)
    sizes = torch.exp2(torch.rand(20_000, generator=source) * 22 - 12)
    yield "float32 numbers", sizes * (1 - 2 * torch.randint(2, (20_000,), generator=source))
    yield "a matrix", torch.linspace(-500, 500, 60).view(6, 10).T


def judge(part: Part) -> None:
    """Judge every number, and name the mistake that has the same results."""
    torch.set_num_threads(1)
    to_e4m3 = part.function("to_e4m3")
    planted = {name: module.to_e4m3 for name, module in plant_ways(WAYS, __file__)}
    for case, numbers in list_numbers():
        with Watcher() as watcher:
            answer = part.call(to_e4m3, numbers.clone(), case=case)
        if watcher.dtype is not None:
            raise part.wrong("library", case, dtype=watcher.dtype)
        right = numbers.clamp(-448, 448).to(torch.float8_e4m3fn).float()
        if not isinstance(answer, torch.Tensor):
            raise Verdict("failed", "other", f"it returned {type(answer).__name__}, not a tensor", case)
        if answer.shape != numbers.shape or answer.dtype != torch.float32:
            shape = list(numbers.shape)
            text = f"it returned {answer.dtype} of the shape {list(answer.shape)}, not float32 of the shape {shape}"
            raise Verdict("failed", "other", text, case)
        wrong = find_differences(answer, right)
        if not wrong.any():
            continue
        first = wrong.flatten().nonzero()[0]
        x, result, expected = (float(tensor.flatten()[first]) for tensor in (numbers, answer, right))
        values = {"x": f"{x:g}", "result": f"{result:g}", "right": f"{expected:g}"}
        for name, function in planted.items():
            if not find_differences(answer, function(numbers)).any():
                raise part.wrong(name, case, **values)
        text = f"{int(wrong.sum()):,} of {wrong.numel():,} numbers are wrong: {x:g} became {result:g} instead of {expected:g}"
        raise Verdict("failed", "other", text, case)
    part.note("all 65,536 numbers of bfloat16, and 20,000 of float32, agree with the hardware's conversion")


def find_differences(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return a mask of the numbers that differ in two tensors. NaN equals NaN, and 0 equals -0."""
    return (left != right) & ~(left.isnan() & right.isnan())
