"""Another solution of 3.3: of the lines through any two sizes, it takes the one with the smallest error over all sizes, in
percent."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict


def read_curve(samples: list[tuple[int, float]]) -> tuple[float, float, int | None]:
    """Return the latency (seconds), the bandwidth (bytes per second), and the size in bytes at which the plateau begins."""
    calls = defaultdict(list)
    for size, seconds in samples:
        calls[size].append(seconds)
    times = {size: statistics.median(seconds) for size, seconds in sorted(calls.items())}
    best = (float("inf"), 0.0, 1.0)
    for (small, short), (large, long) in itertools.combinations(times.items(), 2):
        per_byte = (long - short) / (large - small)
        latency = short - per_byte * small
        if per_byte > 0 and latency > 0:
            misfit = sum(abs((latency + per_byte * size) / time - 1) for size, time in times.items())
            best = min(best, (misfit, latency, per_byte))
    _, latency, per_byte = best
    for size in times:
        if size * per_byte / (latency + size * per_byte) >= 0.9:
            return latency, 1 / per_byte, size
    return latency, 1 / per_byte, None
