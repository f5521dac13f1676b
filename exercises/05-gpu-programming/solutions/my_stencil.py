"""A solution of 5.7: it creates no temporary, and works on blocks of rows that stay in the cache for all five operations."""

from __future__ import annotations

import torch

ROWS = 32  # of a block: with 4,000 columns that is half a megabyte of each grid


def step(u: torch.Tensor, out: torch.Tensor, c: float) -> None:
    """Fill the inner points of `out` with out = u + c * (up + down + left + right - 4 * u)."""
    last = u.shape[0] - 1
    for first in range(1, last, ROWS):
        end = min(first + ROWS, last)
        inner = out[first:end, 1:-1]
        torch.mul(u[first:end, 1:-1], 1 - 4 * c, out=inner)
        inner.add_(u[first - 1 : end - 1, 1:-1], alpha=c).add_(u[first + 1 : end + 1, 1:-1], alpha=c)
        inner.add_(u[first:end, :-2], alpha=c).add_(u[first:end, 2:], alpha=c)
