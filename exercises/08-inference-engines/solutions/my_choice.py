"""Solve the choice of a token in 8.7: each rank sends its best score and its token, both in 64 bits."""

from __future__ import annotations

import torch
import torch.distributed as dist


def choose(scores: torch.Tensor, first: int, group: dist.ProcessGroup | None = None) -> int:
    """Return the token with the highest score of all ranks, the lowest of several."""
    place = int(scores.argmax())
    pair = torch.stack([scores[place].double(), torch.tensor(float(place + first), dtype=torch.float64, device=scores.device)])
    pairs = [torch.empty_like(pair) for _ in range(dist.get_world_size(group))]
    dist.all_gather(pairs, pair, group=group)
    return int(max((pair.tolist() for pair in pairs), key=lambda pair: (pair[0], -pair[1]))[1])
