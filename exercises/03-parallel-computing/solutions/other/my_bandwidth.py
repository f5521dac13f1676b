"""Bus bandwidth by counting the bytes that one rank sends in a ring, divided by the time."""

from __future__ import annotations


def busbw(collective: str, size: float, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth in GB/s."""
    steps = {"all_reduce": 2 * (ranks - 1), "broadcast": ranks}.get(collective, ranks - 1)
    sent_bytes = steps * (size / ranks)
    return sent_bytes / (seconds * 1_000_000_000)
