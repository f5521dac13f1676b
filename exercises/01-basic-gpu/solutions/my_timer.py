"""A solution of 1.1: it warms up and waits; in each sample it times many calls and a wait. The result is the median sample."""

from __future__ import annotations

import statistics
from collections.abc import Callable


def time_call(
    call: Callable[[], object], synchronize: Callable[[], object], clock: Callable[[], float], samples: int, calls: int
) -> float:
    """Return the median seconds of one warm call."""
    call()
    seconds = []
    for _ in range(samples):
        synchronize()
        start = clock()
        for _ in range(calls):
            call()
        synchronize()
        seconds.append((clock() - start) / calls)
    return statistics.median(seconds)
