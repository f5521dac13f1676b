"""Solve the scales of 8.6 by the formula of SmoothQuant and the search of AWQ."""

from __future__ import annotations

import torch


def smooth(activation, weight, alpha):
    """Return the scales of SmoothQuant's formula."""
    return activation.clamp(min=1e-5) ** alpha / weight.abs().amax(0).clamp(min=1e-5) ** (1 - alpha)


def search(weight, inputs, round_trip):
    """Return the scales with the smallest error among 21 powers of the mean input."""
    size = inputs.abs().mean(0).clamp(min=1e-5)
    least, best = float("inf"), torch.ones_like(size)
    for twentieth in range(21):
        scale = size ** (twentieth / 20)
        rough = round_trip(weight * scale) / scale
        change = float((inputs @ (rough - weight).T).pow(2).mean())
        if change < least:
            least, best = change, scale
    return best
