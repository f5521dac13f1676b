"""Solve the conversion of 8.6 on bits: round away 20 of the 23 fraction bits. Near 0, add a large number to round."""

from __future__ import annotations

import torch

NEAR_ZERO = 1.5 * 2.0**14  # float32 numbers around it are 2**-9 apart


def to_e4m3(x):
    """Return the rounded numbers. The size of a number decides how it is rounded."""
    x = x.float()
    bits = x.contiguous().view(torch.int32)
    last = (bits >> 20) & 1
    rounded = ((bits + 0x7FFFF + last) >> 20 << 20).view(torch.float32).clamp(-448.0, 448.0)
    small = (x + NEAR_ZERO) - NEAR_ZERO
    return torch.where(x.isnan(), x, torch.where(x.abs() < 2.0**-6, small, rounded))
