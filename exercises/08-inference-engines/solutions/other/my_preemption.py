"""Solve the costs of preemption in 8.3 in seconds, one direction after the other."""

from __future__ import annotations

from step_clock import Clock

Rows = list[tuple[int, int]]


def recompute_ns(tokens: int, rows: Rows, clock: Clock) -> float:
    """Return how many nanoseconds longer the step takes with the recomputed tokens."""
    before = clock.ns(rows) if rows else 0
    nothing = 0
    return clock.ns((*rows, (nothing, tokens))) - before


def swap_ns(tokens: int, cache_bytes: int, link_gb_per_s: float, copies_per_token: float, copy_ns: int) -> float:
    """Return the nanoseconds of copying a cache to the host and back."""
    total_s = 0.0
    for _direction in ("out", "back"):
        total_s += tokens * cache_bytes / (link_gb_per_s * 10**9)
        total_s += tokens * copies_per_token * copy_ns / 10**9
    return total_s * 10**9
