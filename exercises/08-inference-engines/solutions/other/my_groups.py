"""Solve the groups of 8.6 one block of columns at a time, and pack codes into bytes by arithmetic."""

from __future__ import annotations

import torch


def quantise(weight, bits, group):
    """Return codes, scales and zeros."""
    codes, scales, zeros = [], [], []
    for columns in weight.float().split(group, dim=1):
        low = torch.minimum(columns.min(1, keepdim=True).values, torch.zeros(1))
        high = torch.maximum(columns.max(1, keepdim=True).values, torch.zeros(1))
        scale = ((high - low) / (2**bits - 1)).to(torch.float16)
        step = torch.where(scale == 0, 1.0, scale.float())
        zero = torch.round(-low / step).clamp_(0, 2**bits - 1)
        codes.append(torch.round(columns / step).add_(zero).clamp_(0, 2**bits - 1))
        scales.append(scale)
        zeros.append(zero)
    whole = torch.cat(codes, 1)
    if bits == 4:
        whole = whole[:, 0::2] + 16 * whole[:, 1::2]
    return whole.byte(), torch.cat(scales, 1), torch.cat(zeros, 1).byte()


def dequantise(codes, scale, zero, bits, group):
    """Return (code - zero) × scale."""
    if bits == 4:
        whole = torch.empty(codes.shape[0], 2 * codes.shape[1])
        whole[:, 0::2], whole[:, 1::2] = codes % 16, codes // 16
    else:
        whole = codes.float()
    return (whole - zero.float().repeat_interleave(group, 1)) * scale.float().repeat_interleave(group, 1)
