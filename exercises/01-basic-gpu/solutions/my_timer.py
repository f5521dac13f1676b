"""The time of a call: warm up, wait, start, make many calls, wait, stop. The result is the median of several such samples."""

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
