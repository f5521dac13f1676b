"""The number formats of 9.5: their numbers, PyTorch's own casts, the numbers to test, and a sum in few bits."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Format:
    """A format of floating-point numbers, with a sign; numbers beyond the largest become the largest."""

    exponent_bits: int
    mantissa_bits: int  # stored, without the hidden bit
    largest: float
    dtype: torch.dtype | None  # PyTorch's type that a processor can cast to


FORMATS = {
    "bfloat16": Format(8, 7, torch.finfo(torch.bfloat16).max, torch.bfloat16),
    "float16": Format(5, 10, 65504.0, torch.float16),
    "E5M2": Format(5, 2, 57344.0, torch.float8_e5m2),
    "E4M3": Format(4, 3, 448.0, torch.float8_e4m3fn),
    "E2M1": Format(2, 1, 6.0, None),
}
E2M1_VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])  # the codes 0 to 7; 8 to 15 have the other sign
STEP = 32  # products of a sum after which the accumulator is rounded: those of one instruction


def round_to(x: torch.Tensor, name: str) -> torch.Tensor:
    """Return the nearest numbers of a format as float32, by PyTorch's cast, or for E2M1 by its table.

    A tie goes to the even code, numbers beyond the largest become the largest, and NaN stays NaN.
    """
    form = FORMATS[name]
    size = x.float().clamp(-form.largest, form.largest)
    if form.dtype is not None:
        return size.to(form.dtype).float()
    magnitude, rounded = size.abs(), torch.zeros_like(size)
    for code, (low, high) in enumerate(itertools.pairwise(E2M1_VALUES.tolist())):
        middle = (low + high) / 2
        is_above = magnitude >= middle if code % 2 else magnitude > middle  # a tie goes to the even code
        rounded += is_above * (high - low)
    rounded = torch.copysign(rounded, size)
    return torch.where(size.isnan(), size, rounded)


def truncate(x: float, mantissa_bits: int) -> tuple[float, float]:
    """Return the neighbours of x among numbers with fewer bits and the exponents of float32; x twice if it is such a number."""
    value = float(torch.tensor(x, dtype=torch.float32))
    step = 2.0 ** (math.frexp(value)[1] - 1 - mantissa_bits) if value else 1.0
    return math.floor(value / step) * step, math.ceil(value / step) * step


def list_numbers(count: int, seed: int = 0) -> torch.Tensor:
    """Return float32 numbers to round: all of bfloat16 and of float16, and `count` others of many sizes, without NaN."""
    source = torch.Generator().manual_seed(seed)
    patterns = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    bits = torch.randint(-(2**31), 2**31, (count // 2,), generator=source).to(torch.int32).view(torch.float32)
    powers = torch.exp2(torch.randint(-12, 10, (count - count // 2,), generator=source).float())
    near = torch.randn(count - count // 2, generator=source) * powers
    numbers = torch.cat([patterns.view(torch.bfloat16).float(), patterns.view(torch.float16).float(), bits, near])
    return numbers[~numbers.isnan()]


def count_differences(left: torch.Tensor, right: torch.Tensor) -> int:
    """Return how many numbers of two float32 tensors differ in a bit, the sign of 0 included."""
    return int((left.contiguous().view(torch.int32) != right.contiguous().view(torch.int32)).sum())


def sum_products(a: torch.Tensor, b: torch.Tensor, bits: int, promote: int) -> torch.Tensor:
    """Return the dot product of each row of a with the same row of b, in an accumulator of `bits` bits of fraction.

    The accumulator is cut to these bits after every 32 products. Every `promote` products (a multiple of 32; 0: never) it is
    added to a float32 sum, and begins at 0 again. It is a model of a tensor core, not a measurement of one.
    """
    mask = -(1 << (23 - bits))
    total = torch.zeros(len(a))
    part = torch.zeros(len(a))
    for first in range(0, a.shape[1], STEP):
        part = part + (a[:, first : first + STEP] * b[:, first : first + STEP]).sum(1)
        part = (part.view(torch.int32) & mask).view(torch.float32)
        if promote and (first + STEP) % promote == 0:
            total += part
            part = torch.zeros(len(a))
    return total + part
