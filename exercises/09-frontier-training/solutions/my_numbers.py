"""A solution of 9.5: the step around each number follows from its exponent."""

from __future__ import annotations

import torch


def quantise(x, exponent_bits, mantissa_bits, largest):
    """Return the nearest multiple of the step around each number."""
    x = x.clamp(-largest, largest)
    exponent = torch.frexp(x).exponent - 1
    lowest = 2 - 2 ** (exponent_bits - 1)
    step = torch.ldexp(torch.ones_like(x), exponent.clamp(min=lowest) - mantissa_bits)
    return torch.round(x / step) * step


def stochastic(x, step, generator):
    """Return the lower neighbour of x plus a random number below one step."""
    return torch.floor(x / step + torch.rand(x.shape, generator=generator)) * step
