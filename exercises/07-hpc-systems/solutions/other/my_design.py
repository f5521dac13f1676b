"""Another solution of 7.5: the five rules, computed step by step."""

from __future__ import annotations


def to_vfio(listing: str, gpu: str, host_needs: set[str]) -> list[str]:
    """Find the group in a dictionary of groups."""
    groups: dict[str, list[str]] = {}
    for line in listing.splitlines():
        _, _, group, address, *words = line.split()
        if "[0604]:" not in words:
            groups.setdefault(group, []).append(address)
    for members in groups.values():
        if gpu in members:
            return [] if any(member in host_needs for member in members) else sorted(members)
    return []


def gpus_needed(needs: list[int], profiles: dict[int, int]) -> int:
    """Count GPUs profile by profile, from the largest. Free places take machines of smaller needs."""
    sizes = sorted(profiles, reverse=True)
    free = count = 0
    for size, smaller in zip(sizes, [*sizes[1:], 0], strict=True):
        waiting = sum(smaller < need <= size for need in needs)
        used = min(free, waiting)
        free, waiting = free - used, waiting - used
        more = -(-waiting // profiles[size])
        count, free = count + more, free + more * profiles[size] - waiting if more else free
    return count


def switches(nodes: int, ports: int, ratio: int) -> tuple[int, int]:
    """Add switches one by one."""
    up = 0
    while (up + 1) * (ratio + 1) <= ports:
        up += 1
    lower = 0
    while lower * up * ratio < nodes:
        lower += 1
    upper = 0
    while upper * ports < lower * up:
        upper += 1
    return lower, upper


def stripes(gib: int, ranks: int, every_s: int, share: float, ost_gb_per_s: float, osts: int) -> tuple[int, int] | None:
    """Add targets one by one, and halve the stripe until it fits."""
    for count in range(1, osts + 1):
        if count * ost_gb_per_s * 1e9 * every_s * share >= gib * 2**30:
            size = 1024
            while gib * 1024 // ranks % size:
                size //= 2
            return count, size
    return None


def scheduler(runs: str, starts: str, shares: str) -> str:
    """Choose by whether the workload ends."""
    return {"to its end": "slurm", "for ever": "kubernetes"}[runs]
