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
    """Return the seconds that the device works on one call, measured in `samples` samples of `calls` calls each.

    `call()` puts work into the device's queue and returns immediately. `synchronize()` waits until the queue is empty, which
    takes some time itself. `clock()` returns seconds. There is no GPU here, and no other clock.

    The result describes one call of a long series: it does not depend on what the device did before, on what it does only
    once, or on the time that `synchronize()` itself takes. As many samples are faster than the result as are slower, so a
    sample that was disturbed hardly changes it.
    """
    raise NotImplementedError("time_call: when has the device finished, and what waits for it?")
