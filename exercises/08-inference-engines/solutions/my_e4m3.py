"""Solve the conversion of 8.6 by the step between neighbours, which follows from the exponent, at least -6."""

from __future__ import annotations

import torch


def to_e4m3(x):
    """Round each number to the nearest multiple of its step."""
    size = x.float().abs().clamp(max=448.0)
    exponent = torch.frexp(size).exponent - 1
    step = torch.ldexp(torch.ones_like(size), exponent.clamp(min=-6) - 3)
    return torch.copysign(torch.round(size / step) * step, x.float())
