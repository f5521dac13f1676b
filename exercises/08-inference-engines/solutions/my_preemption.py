"""A solution of 8.3: one cost is the difference between two steps, the other counts the bytes and the copies twice."""

from __future__ import annotations

from step_clock import Clock

Rows = list[tuple[int, int]]


def recompute_ns(tokens: int, rows: Rows, clock: Clock) -> float:
    """Return how many nanoseconds longer the step takes."""
    return clock.ns([*rows, (0, tokens)]) - (clock.ns(rows) if rows else 0)


def swap_ns(tokens: int, cache_bytes: int, link_gb_per_s: float, copies_per_token: float, copy_ns: int) -> float:
    """Return the nanoseconds to the host and back."""
    return 2 * tokens * (cache_bytes / link_gb_per_s + copies_per_token * copy_ns)
