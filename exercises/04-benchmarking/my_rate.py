"""Your part of 4.2: what a device reached in a burst, and what it sustained, from the times of single matrix products.

You will learn    how operations are counted; why a rate is work over time and no mean of rates; which half of a run counts
You will produce  a `rates` that is right for any shapes and for any run
Try it            gpucourse try 4.2
Your part         the body of `rates`; keep its name, its parameters and the names in what it returns
Reading           modules/04-benchmarking/lesson.md, "Burst and sustained"
"""

from __future__ import annotations


def rates(m: int, k: int, n: int, calls: list[tuple[float, float]], peak_tflops: float) -> dict[str, float]:
    """What a run of the same product shows: {"burst", "sustained", "percent"}.

    Each call multiplied a matrix of m x k by one of k x n. `calls` has a pair (began, took) for each, in the order in which
    they ran: when it began, in seconds on a clock that was not zero at the start, and how many seconds it took.

    "burst": TFLOP/s of the median of the calls that began less than 1 second after the first of them began.
    "sustained": TFLOP/s of the second half of the run by the clock: the operations of all calls that began in the middle
    between the begin of the first call and the end of the last, or later, over the seconds that these calls took together.
    "percent": the sustained rate as a percentage of `peak_tflops`.
    """
    raise NotImplementedError("rates: how many multiplications and additions does one product take?")
