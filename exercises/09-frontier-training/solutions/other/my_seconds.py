"""Solve the times of 9.1 by adding up the time of the largest message of each round."""

from __future__ import annotations

import math
from collections.abc import Sequence


def _list_messages(algorithm: str, ranks: int, size_bytes: int) -> list[float]:
    """Return the size of the largest message of each round."""
    levels = math.ceil(math.log2(ranks))
    if algorithm == "ring":
        return [size_bytes / ranks] * (2 * ranks - 2)
    if algorithm == "tree":
        return [size_bytes] * (2 * levels)
    if 2**levels != ranks:
        raise ValueError(algorithm)
    if algorithm == "doubling":
        return [size_bytes] * levels
    return [size_bytes / 2**level for level in range(1, levels + 1)] * 2


def seconds(algorithm: str, ranks: int, size_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Return the sum of the times of all rounds."""
    return sum(latency_s + message / bytes_per_s for message in _list_messages(algorithm, ranks, size_bytes))


def choose(algorithms: Sequence[str], ranks: int, size_bytes: int, latency_s: float, bytes_per_s: float) -> str:
    """Return the algorithm with the least time, the first after sorting."""
    times = []
    for name in algorithms:
        try:
            times.append((seconds(name, ranks, size_bytes, latency_s, bytes_per_s), name))
        except ValueError:
            continue
    return min(times)[1]
