"""Your second part of 9.5: a common scale for each block of numbers, in three formats of scales.

You will learn    why 8 and 4 bits need scales, how many numbers should share one, and what the format of a scale changes
You will produce  the scales of MXFP8, MXFP4 and NVFP4, and the numbers that a tensor in such a format stands for
Try it            gpucourse try 9.5
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/09-frontier-training/lesson-6-formats.md, "One scale, many scales"
"""

from __future__ import annotations

import torch
from number_formats import FORMATS, round_to  # noqa: F401  # for what you write


def scales(blocks: torch.Tensor, largest: float, kind: str) -> torch.Tensor:
    """Return the scale of each row of `blocks` [rows, size], as float32 [rows, 1]. A row is divided by it before rounding.

    kind "float32": the largest magnitude of a row becomes `largest`, the largest number of the format.
    kind "E8M0": the smallest power of two with which no number of the row exceeds `largest`.
    kind "E4M3": the scale is a number of E4M3 times one float32, which all rows share. That float32 is chosen so that the
    largest of the scales of kind "float32" becomes 448. The others are rounded to the nearest number of E4M3, and those that
    would become 0 get its smallest, 2 ** -9. `round_to(x, "E4M3")` returns the nearest number of E4M3.
    A row of zeros may have any finite scale above 0.
    """
    raise NotImplementedError("scales: which number of a row decides?")


def fake_quantise(x: torch.Tensor, name: str, block: int, kind: str) -> torch.Tensor:
    """Return what a tensor stands for (float32, same shape) after rounding to the format `name` of FORMATS, with scales.

    Neighbours along the last dimension of x share a scale, `block` at a time; `block` divides that dimension.
    `round_to(y, name)` returns the nearest numbers of the format, and `FORMATS[name].largest` is its largest number.
    """
    raise NotImplementedError("fake_quantise: what has to happen after rounding, so that products are right?")
