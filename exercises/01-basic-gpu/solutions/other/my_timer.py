"""The same time from one list of clock readings. Each sample begins where the previous one ended, and the first is dropped."""

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
