"""Solve the scales of 9.5 from exponents: powers of two by the exponent, and E4M3 scales as codes before values."""

from __future__ import annotations

import torch
from number_formats import FORMATS, round_to


def _largest(blocks):
    return torch.maximum(blocks.max(1, keepdim=True).values, -blocks.min(1, keepdim=True).values).float()


def scales(blocks, largest, kind):
    """Return scales of one kind; zeros are replaced at the end."""
    size = _largest(blocks)
    if kind == "E8M0":
        fraction, exponent = torch.frexp(size / largest)
        exponent = torch.where(fraction == 0.5, exponent - 1, exponent).clamp(min=-126)
        return torch.ldexp(torch.ones_like(size), exponent)
    if kind == "float32":
        return torch.where(size > 0, size / largest, torch.ones_like(size))
    top = float(size.max())
    if top == 0:
        return torch.ones_like(size)
    codes = torch.maximum(round_to(size * (448 / top), "E4M3"), torch.tensor(2.0**-9))
    return codes * (top / (448 * largest))


def fake_quantise(x, name, block, kind):
    """Return the rounded tensor, with the blocks as a further dimension in between."""
    blocks = x.unflatten(-1, (-1, block))
    scale = scales(blocks.flatten(0, -2), FORMATS[name].largest, kind).view(*blocks.shape[:-1], 1)
    return (scale * round_to(blocks / scale, name)).flatten(-2)
