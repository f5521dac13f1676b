"""Time NCCL's all-reduce with its own choice of the algorithm, with a ring, and with a tree."""

from __future__ import annotations

import os
from typing import Any

import bench
import torch
import torch.distributed as dist

SIZES = tuple(1 << power for power in (10, 14, 20, 24, 28))
CHOICES = ("NCCL's choice", "Ring", "Tree")


def measure(world: Any) -> list[dict[str, Any]]:
    """Return a row {bytes, algorithm, us} for each size and choice. Without several GPUs there are no rows.

    NCCL reads NCCL_ALGO when it makes a communicator, which is at the first collective of a group.
    """
    if world.device.type != "cuda" or world.size < 2:
        return []
    rows = []
    for choice in CHOICES:
        os.environ.pop("NCCL_ALGO", None)
        if choice != CHOICES[0]:
            os.environ["NCCL_ALGO"] = choice
        group = dist.new_group(backend="nccl")
        for size in SIZES:
            tensor = torch.zeros(size // 4, device=world.device)
            seconds = bench.time_each(lambda tensor=tensor, group=group: dist.all_reduce(tensor, group=group), world.device, 25)
            median = sorted(world.slowest(seconds[5:]))[10]
            rows.append({"bytes": size, "algorithm": choice, "us": 1e6 * median})
        dist.destroy_process_group(group)
    os.environ.pop("NCCL_ALGO", None)
    return rows
