"""Solve the attention of 8.2 in two passes over the pages: the logarithm of the sum of weights, then the weighted values."""

from __future__ import annotations

import torch


def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: list[int], length: int) -> torch.Tensor:
    """Return attention of the last T of `length` tokens, query by query."""
    count, heads, dim = q.shape
    size, group = keys.shape[1], heads // keys.shape[2]
    rows = []
    for row in range(count):
        end = length - count + row + 1
        pieces = [(table[first // size], min(size, end - first)) for first in range(0, end, size)]

        def score(page: int, filled: int, row: int = row) -> torch.Tensor:
            key = keys[page, :filled].repeat_interleave(group, 1)
            return (key * q[row]).sum(-1) / dim**0.5

        total = torch.full((heads,), float("-inf"), dtype=q.dtype, device=q.device)
        for piece in pieces:
            total = torch.logaddexp(total, score(*piece).logsumexp(0))
        out = torch.zeros_like(q[row])
        for page, filled in pieces:
            value = values[page, :filled].repeat_interleave(group, 1)
            out += ((score(page, filled) - total).exp()[..., None] * value).sum(0)
        rows.append(out)
    return torch.stack(rows)
