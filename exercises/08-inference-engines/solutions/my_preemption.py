"""One step with an empty cache, and the bytes and the copies twice."""

from __future__ import annotations

from step_clock import Clock


def recompute_ns(tokens: int, clock: Clock) -> float:
    """Return the nanoseconds of one step that computes the tokens again."""
    return clock.ns([(0, tokens)])


def swap_ns(tokens: int, cache_bytes: int, link_gb_per_s: float, copies_per_token: float, copy_ns: int) -> float:
    """Return the nanoseconds to the host and back."""
    return 2 * tokens * (cache_bytes / link_gb_per_s + copies_per_token * copy_ns)
