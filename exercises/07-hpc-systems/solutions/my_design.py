"""A solution of 7.5: five rules."""

from __future__ import annotations

import math
import re


def to_vfio(listing: str, gpu: str, host_needs: set[str]) -> list[str]:
    """Return the whole group except its bridges."""
    devices = re.findall(r"^IOMMU Group +(\d+) (\S+) .*?\[(\w{4})\]:", listing, re.MULTILINE)
    own_group = next(group for group, address, _ in devices if address == gpu)
    together = [address for group, address, kind in devices if group == own_group and kind != "0604"]
    return [] if host_needs.intersection(together) else sorted(together)


def gpus_needed(needs: list[int], profiles: dict[int, int]) -> int:
    """Return the fewest GPUs, filled from the largest need down."""
    remaining = sorted(needs, reverse=True)
    count = 0
    while remaining:
        profile = min(size for size in profiles if size >= remaining[0])
        remaining = remaining[profiles[profile] :]
        count += 1
    return count


def switches(nodes: int, ports: int, ratio: int) -> tuple[int, int]:
    """Return the switches if one port in ratio + 1 goes up."""
    up = ports // (ratio + 1)
    down = ratio * up
    lower = math.ceil(nodes / down)
    return lower, math.ceil(lower * up / ports)


def stripes(gib: int, ranks: int, every_s: int, share: float, ost_gb_per_s: float, osts: int) -> tuple[int, int] | None:
    """Return as many stripes as targets are needed for the bytes per second."""
    seconds = every_s * share
    count = math.ceil(gib * 2**30 / seconds / (ost_gb_per_s * 1e9))
    part = gib * 1024 // ranks
    size = max(2**power for power in range(11) if part % 2**power == 0)
    return (count, size) if count <= osts else None


def scheduler(runs: str, starts: str, shares: str) -> str:
    """Return Kubernetes for workloads that run for ever, and Slurm for workloads that end."""
    return "kubernetes" if runs == "for ever" else "slurm"
