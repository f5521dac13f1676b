"""Another solution of 0.1: it computes one head after the other, and multiplies exponentials by a mask."""

from __future__ import annotations

import torch


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int, lines: torch.Tensor) -> torch.Tensor:
    """Return the weighted mean of the values that each character may look at."""
    size = query.shape[-1] // heads
    places = torch.arange(query.shape[1], device=lines.device)
    mask = (places[:, None] >= places) * (lines.unsqueeze(2) == lines.unsqueeze(1))
    results = []
    for own_query, own_key, own_value in zip(*(part.split(size, dim=-1) for part in (query, key, value)), strict=True):
        scores = torch.einsum("bqs,bks->bqk", own_query, own_key) * size**-0.5
        weights = (scores - scores.amax(dim=-1, keepdim=True).detach()).exp() * mask
        results.append(weights @ own_value / weights.sum(dim=-1, keepdim=True))
    return torch.cat(results, dim=-1)
