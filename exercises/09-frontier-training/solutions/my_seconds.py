"""Solve the times of 9.1 by a formula: rounds times latency, plus bytes over bandwidth."""

from __future__ import annotations

from collections.abc import Sequence


def seconds(algorithm: str, ranks: int, size_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Return rounds * latency + bytes / bandwidth."""
    levels = (ranks - 1).bit_length()
    if algorithm in ("doubling", "halving") and ranks != 1 << levels:
        raise ValueError(f"{algorithm} needs a power of two, not {ranks}")
    rounds = {"ring": 2 * (ranks - 1), "doubling": levels, "halving": 2 * levels, "tree": 2 * levels}[algorithm]
    sent_bytes = 2 * (ranks - 1) * size_bytes / ranks if algorithm in ("ring", "halving") else rounds * size_bytes
    return rounds * latency_s + sent_bytes / bytes_per_s


def choose(algorithms: Sequence[str], ranks: int, size_bytes: int, latency_s: float, bytes_per_s: float) -> str:
    """Return the algorithm with the least time."""
    is_power = ranks & (ranks - 1) == 0
    possible = [name for name in algorithms if is_power or name in ("ring", "tree")]
    return min(possible, key=lambda name: seconds(name, ranks, size_bytes, latency_s, bytes_per_s))
