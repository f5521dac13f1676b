"""Another solution of 5.7: one convolution with a cross of five weights; it moves the fewest bytes, but is slow on a CPU."""

from __future__ import annotations

import torch


def step(u: torch.Tensor, out: torch.Tensor, c: float) -> None:
    """Fill the inner points of `out` with out = u + c * (up + down + left + right - 4 * u)."""
    cross = torch.tensor([[0, c, 0], [c, 1 - 4 * c, c], [0, c, 0]], dtype=u.dtype, device=u.device)
    out[1:-1, 1:-1] = torch.nn.functional.conv2d(u[None, None], cross[None, None])[0, 0]
