"""A solution of 3.8: a hook sends float16, and keeps the rounding error for the next step."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def half_hook(errors: dict[int, torch.Tensor], bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """Return the mean of all ranks' gradients, sent as float16."""
    ranks = dist.get_world_size()
    target = bucket.buffer() + errors.get(bucket.index(), 0.0)
    rounded = (target / ranks).half()
    errors[bucket.index()] = target - rounded.float() * ranks
    future = dist.all_reduce(rounded, async_op=True).get_future()
    return future.then(lambda result: result.value()[0].float())
