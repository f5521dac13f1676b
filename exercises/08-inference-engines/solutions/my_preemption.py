"""Solve the costs of preemption in 8.3: the difference between two steps, and the time of bytes and copies both ways."""

from __future__ import annotations

from step_clock import Clock

Rows = list[tuple[int, int]]


def recompute_ns(tokens: int, rows: Rows, clock: Clock) -> float:
    """Return how many nanoseconds longer the step takes with the recomputed tokens."""
    return clock.ns([*rows, (0, tokens)]) - (clock.ns(rows) if rows else 0)


def swap_ns(tokens: int, cache_bytes: int, link_gb_per_s: float, copies_per_token: float, copy_ns: int) -> float:
    """Return the nanoseconds of copying a cache to the host and back."""
    return 2 * tokens * (cache_bytes / link_gb_per_s + copies_per_token * copy_ns)
