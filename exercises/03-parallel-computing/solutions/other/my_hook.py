"""Another solution of 3.8: divide first, write into the bucket, and wait for the sum before returning."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def half_hook(errors: dict[int, torch.Tensor], bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """Return the mean of all ranks' gradients, sent as float16."""
    gradient = bucket.buffer()
    gradient.div_(dist.get_world_size())
    if bucket.index() in errors:
        gradient.add_(errors[bucket.index()])  # on the scale of the mean
    small = gradient.to(torch.float16)
    errors[bucket.index()] = gradient - small
    dist.all_reduce(small)
    gradient.copy_(small)
    ready: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    ready.set_result(gradient)
    return ready
