"""The same on the scale of the mean: divide first, write into the bucket, wait for the sum before returning."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def half_hook(kept: dict[int, torch.Tensor], bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """Return the mean of all ranks' gradients, sent as float16."""
    gradient = bucket.buffer()
    gradient.div_(dist.get_world_size())
    if bucket.index() in kept:
        gradient.add_(kept[bucket.index()])  # in the scale of the mean
    small = gradient.to(torch.float16)
    kept[bucket.index()] = gradient - small
    dist.all_reduce(small)
    gradient.copy_(small)
    ready: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    ready.set_result(gradient)
    return ready
