"""Your part of 4.2: compute the burst and the sustained rate of a device from the times of single matrix products.

You will learn    how operations are counted; why a rate is work over time, not a mean of rates; which half of a run counts
You will produce  a `rates` that is right for any shape and any run
Try it            gpucourse try 4.2
Your part         the body of `rates`; keep its name, its parameters and the names in its result
Reading           modules/04-benchmarking/lesson.md, "Burst and sustained"
"""

from __future__ import annotations


def rates(m: int, k: int, n: int, calls: list[tuple[float, float]], peak_tflops: float) -> dict[str, float]:
    """Return three figures for a run of the same product: {"burst", "sustained", "percent"}.

    Each call multiplied an m x k matrix by a k x n matrix. `calls` has a pair (began, took) for each call, in the order of the
    run: when the call began, in seconds on a clock that did not start at zero, and how many seconds the call took.

    "burst": TFLOP/s from the median time of the calls that began less than 1 second after the first call began.
    "sustained": TFLOP/s in the second half of the run by the clock. That half begins midway between the start of the first call
    and the end of the last. Divide the operations of all calls that began then or later by the seconds that these calls took
    together.
    "percent": the sustained rate as a percentage of `peak_tflops`.
    """
    raise NotImplementedError("rates: how many multiplications and additions does one product take?")
