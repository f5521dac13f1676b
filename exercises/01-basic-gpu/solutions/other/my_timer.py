"""Another solution of 1.1: it reads the clock once between two samples, and drops the first sample."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable


def time_call(
    call: Callable[[], object], synchronize: Callable[[], object], clock: Callable[[], float], samples: int, calls: int
) -> float:
    """Return the median seconds of one warm call."""
    moments = []
    for _ in range(samples + 1):
        for _ in range(calls):
            call()
        synchronize()
        moments.append(clock())
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(moments)) / calls
