"""Another solution of 9.5: the addition of a large number in float64 rounds to its last bit."""

from __future__ import annotations

import torch


def quantise(x, exponent_bits, mantissa_bits, largest):
    """Add and subtract 1.5 * 2**52 steps: float64 has no bits below the step there, and it rounds ties to even."""
    wide = x.double().clamp(-largest, largest)
    lowest = 2 - 2 ** (exponent_bits - 1)
    power = torch.floor(torch.log2(wide.abs().clamp(min=2.0**lowest)))
    power = torch.where(torch.exp2(power) > wide.abs().clamp(min=2.0**lowest), power - 1, power)
    far = 1.5 * torch.exp2(power - mantissa_bits + 52)
    return torch.copysign((wide + far) - far, wide).float()


def stochastic(x, step, generator):
    """Compare a random number with the share of the step above the lower neighbour."""
    low = torch.div(x, step, rounding_mode="floor")
    share = x / step - low
    return (low + (torch.rand(x.shape, generator=generator) < share).float()) * step
