"""Another solution of 5.10: it keeps the result so far and the logarithm of its sum, and mixes in each block."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def attend(queries: torch.Tensor, blocks: Iterable[tuple[torch.Tensor, torch.Tensor]], scale: float) -> torch.Tensor:
    """Return softmax(queries · keysᵀ · scale) · values over all blocks."""
    out, so_far = None, None
    for keys, values in blocks:
        scores = queries @ keys.T * scale
        logarithm = torch.logsumexp(scores, 1, keepdim=True)
        block = torch.softmax(scores, 1) @ values
        if out is None:
            out, so_far = block, logarithm
            continue
        both = torch.logaddexp(so_far, logarithm)
        out = out * torch.exp(so_far - both) + block * torch.exp(logarithm - both)
        so_far = both
    return out
