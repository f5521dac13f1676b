"""Your part of 8.6: weights in a few bits, in groups that each have their own scale.

You will learn    what a scale and a zero are, what a group costs in bytes, and how large an error can be
You will produce `quantise` and `dequantise`, as weight-only formats (AWQ, GPTQ) use them
Try it            gpucourse try 8.6
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/08-inference-engines/lesson-7-fewer-bits.md, "Integers in groups"
"""

from __future__ import annotations

import torch


def quantise(weight: torch.Tensor, bits: int, group: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the codes, the scales and the zeros of a float32 matrix [out, in], in groups of `group` neighbours along `in`.

    Every group has its own scale and zero. Its range is from its smallest to its largest weight, and includes 0. The codes 0 to
    2**bits - 1 divide this range into equal steps. The scale is the size of a step, rounded to float16 before it is used. The
    zero is the code of 0.0, a whole number. The code of a weight is the nearest one. `dequantise` returns zeros for a group of
    zeros.

    scales: float16 [out, in / group]; zeros: uint8 [out, in / group]. codes: uint8 [out, in]; with 4 bits two codes share a
    byte, [out, in / 2]: the code of an even place is in the low four bits, that of the next place in the high four.
    """
    raise NotImplementedError("quantise: which range do the codes of a group cover, and which code means 0.0?")


def dequantise(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, bits: int, group: int) -> torch.Tensor:
    """Return the weights that the codes stand for, float32 [out, in]: (code - zero) × scale, with the zero and scale of its
    group.
    """
    raise NotImplementedError("dequantise: which scale belongs to a code?")
