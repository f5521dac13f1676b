"""Solve the scales of 9.5 from the largest magnitude of each block."""

from __future__ import annotations

import torch
from number_formats import FORMATS, round_to


def scales(blocks, largest, kind):
    """Return the exact scale, its power of two rounded up, or its nearest number of E4M3 under one float32."""
    exact = blocks.abs().amax(1, keepdim=True).clamp(min=1e-30) / largest
    if kind == "float32":
        return exact
    if kind == "E8M0":
        return torch.exp2(torch.ceil(torch.log2(exact)))
    whole = exact.amax() / 448
    return round_to(exact / whole, "E4M3").clamp(min=2**-9) * whole


def fake_quantise(x, name, block, kind):
    """Return the rounded quotients, multiplied by the scales again."""
    blocks = x.reshape(-1, block)
    scale = scales(blocks, FORMATS[name].largest, kind)
    return (round_to(blocks / scale, name) * scale).view(x.shape)
