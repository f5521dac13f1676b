"""Solve the groups of 8.6 with one range for each group, which includes 0."""

from __future__ import annotations

import torch


def quantise(weight, bits, group):
    """Return codes, scales and zeros."""
    top = 2**bits - 1
    groups = weight.float().view(weight.shape[0], -1, group)
    low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    scale = ((high - low) / top).clamp(min=2**-24).half()
    step = scale.float()
    zero = (-low / step).round().clamp(0, top)
    codes = ((groups / step[..., None]).round() + zero[..., None]).clamp(0, top).view(weight.shape).to(torch.uint8)
    if bits == 4:
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    return codes, scale, zero.to(torch.uint8)


def dequantise(codes, scale, zero, bits, group):
    """Return (code - zero) × scale."""
    if bits == 4:
        codes = torch.stack([codes & 15, codes >> 4], -1).flatten(1)
    groups = codes.view(codes.shape[0], -1, group).float()
    return ((groups - zero.float()[..., None]) * scale.float()[..., None]).flatten(1)
