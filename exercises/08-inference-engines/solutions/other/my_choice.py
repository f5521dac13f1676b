"""Solve the choice of a token in 8.7 by two all-reduces: the highest score, then the lowest token with this score."""

from __future__ import annotations

import torch
import torch.distributed as dist


def choose(scores: torch.Tensor, first: int, group: dist.ProcessGroup | None = None) -> int:
    """Return the lowest token among those with the highest score."""
    scores = scores.double()
    highest = scores.max().reshape(1)
    dist.all_reduce(highest, op=dist.ReduceOp.MAX, group=group)
    candidate = (scores == highest).nonzero().flatten()[:1] + first
    token = candidate if len(candidate) else torch.full((1,), torch.iinfo(torch.int64).max, device=scores.device)
    dist.all_reduce(token, op=dist.ReduceOp.MIN, group=group)
    return int(token)
