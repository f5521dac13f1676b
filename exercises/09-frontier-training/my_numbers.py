"""Your first part of 9.5: round numbers to any floating-point format, bit for bit as the hardware does, or at random.

You will learn    how a format spaces its numbers, what happens at both ends, and why a random rounding can be right on average
You will produce  `quantise`, which equals PyTorch's casts in every bit, and `stochastic`
Try it            gpucourse try 9.5
Your part         the bodies of both functions, without PyTorch's own small types; keep their names and parameters
Reading           modules/09-frontier-training/lesson-6-formats.md, "What a float is"
"""

from __future__ import annotations

import torch


def quantise(x: torch.Tensor, exponent_bits: int, mantissa_bits: int, largest: float) -> torch.Tensor:
    """Return the nearest number of a format for each number of x (float32, any shape), as float32 of the same shape.

    The smallest exponent of the format is 2 - 2 ** (exponent_bits - 1). From there on, 2 ** mantissa_bits numbers are equally
    spaced from each power of two to the next. Below the smallest power of two the spacing stays the same, down to 0. A number
    half way between two goes to the one whose last bit of mantissa is 0. Numbers beyond `largest`, infinity included, become
    `largest`. The sign stays, also of 0. NaN is never passed.
    """
    raise NotImplementedError("quantise: how far apart are the numbers of the format around x?")


def stochastic(x: torch.Tensor, step: float, generator: torch.Generator) -> torch.Tensor:
    """Return a multiple of `step` for each number of x (float32, any shape): one of its two neighbours, at random.

    Each number goes up with the probability with which the mean of many roundings is x itself, and a multiple of `step` stays.
    Each number has its own random number from `generator`: two calls after the same seed return the same.
    """
    raise NotImplementedError("stochastic: how probable is the upper neighbour, if x is close to the lower one?")
