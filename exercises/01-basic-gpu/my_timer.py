"""Your part of 1.1: time a call on a device that is still working after the call has returned.

You will learn    which times do not belong to the work, and how each of them gets into a measurement
You will produce  a `time_call` that is right on a cold device, on a busy one, and on one that is slow now and then
Try it            gpucourse try 1.1
Your part         the body of `time_call`; keep its name and its parameters
Reading           modules/01-basic-gpu/lesson.md, "How to time a GPU"
"""

from __future__ import annotations

from collections.abc import Callable


def time_call(
    call: Callable[[], object], synchronize: Callable[[], object], clock: Callable[[], float], samples: int, calls: int
) -> float:
    """Return the seconds that the device works on one warm call: the median of `samples` samples, each of `calls` calls.

    `call()` puts work into the device's queue and returns immediately. `synchronize()` waits until the queue is empty. It takes
    some time itself, which hardly counts if a sample has many calls. `clock()` returns seconds.

    The very first call is slow, because it loads and reserves what later calls use. When you begin, other work may be in the
    queue. Other programs may disturb a sample. There is no GPU here, and no other clock.
    """
    raise NotImplementedError("time_call: when has the device finished, and what waits for it?")
