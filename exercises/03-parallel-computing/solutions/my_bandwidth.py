"""Bus bandwidth from the time of a collective: algorithm bandwidth x how often each byte crosses the busiest link."""

from __future__ import annotations


def busbw(collective: str, size: float, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth in GB/s."""
    others = (ranks - 1) / ranks
    factor = {"all_reduce": 2 * others, "broadcast": 1.0, "all_gather": others, "reduce_scatter": others}[collective]
    return size / seconds / 1e9 * factor
