"""Your second part of 8.6: round to an 8-bit floating-point format, as a GPU does.

You will learn    how a floating-point format spaces its numbers, and what happens at both ends
You will produce  a `to_e4m3` that agrees with the hardware's conversion for every number
Try it            gpucourse try 8.6
Your part         the body of `to_e4m3`, without PyTorch's own float8 types; keep its name and parameter
Reading           modules/08-inference-engines/lesson-7-fewer-bits.md, "Eight bits that float"
"""

from __future__ import annotations

import torch


def to_e4m3(x: torch.Tensor) -> torch.Tensor:
    """Return the numbers of FP8 E4M3 that are nearest to x (float32, any shape), as float32 of the same shape.

    E4M3 has a sign, 4 bits of exponent and 3 bits of fraction. Between 2**e and 2**(e + 1) its numbers are 2**(e - 3) apart,
    for e from -6 to 8. Below 2**-6 they stay 2**-9 apart, down to 0. The largest is 448. A number half way between two goes to
    the one whose last bit of fraction is 0. Larger numbers and infinity become 448, with their sign. NaN stays NaN.
    """
    raise NotImplementedError("to_e4m3: how far apart are the numbers of the format around x?")
