"""Your part of 4.2: find the burst and the sustained rate of a device in the times of single matrix products.

You will learn    how operations are counted; when a run shows a sustained rate, and when it does not
You will produce  a `rates` that is right for any shape and any run
Try it            gpucourse try 4.2
Your part         the body of `rates`; keep its name, its parameters and the names in its result
Reading           modules/04-benchmarking/lesson.md, "Burst and sustained"
"""

from __future__ import annotations


def rates(m: int, k: int, n: int, calls: list[tuple[float, float]], peak_tflops: float) -> dict[str, float | None]:
    """Return four figures for a run of the same product: {"burst", "settled_s", "sustained", "percent"}.

    Each call multiplied an m x k matrix by a k x n matrix. `calls` has a pair (began, took) for each of at least 100 calls, in
    the order of the run: when the call began, in seconds on a clock that did not start at zero, and how many seconds it took.
    The times vary by a few percent from call to call, and something else disturbs a call now and then. Between two calls the
    program may do other work.

    "burst": TFLOP/s from the median time of the calls that began less than 1 second after the first call began.
    "settled_s": the seconds from the beginning of the first call until the rate has stopped changing. From then on it changes
    by less than 5 %, apart from disturbed calls. An error of a tenth of the run's length is allowed.
    "sustained": the operations of all calls that began then or later, divided by the seconds that these calls took together.
    "percent": the sustained rate as a percentage of `peak_tflops`.
    A run in which the rate still changes in its last third shows no sustained rate: the last three figures are then None.
    """
    raise NotImplementedError("rates: how do you tell a change of the clock from a disturbed call?")
