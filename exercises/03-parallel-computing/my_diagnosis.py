"""Your part of 3.7: say what a scaling curve shows, but nothing that may be noise.

You will learn    how to compare noisy times; when a bottleneck may be named; what a serial part and overhead look like
You will produce  a `diagnose` that works on any curve, such as those that 3.7 has just measured
Try it            gpucourse try 3.7
Your part         the body of `diagnose`; keep its name, its parameter and the names in what it returns
Reading           modules/03-parallel-computing/lesson-4-bytes.md, "The scaling curve"
"""

from __future__ import annotations


def diagnose(curve: list[dict]) -> dict[str, object]:
    """Return what a scaling curve shows: {"efficiency", "losses_ms", "bottleneck", "overhead_grows"}.

    `curve` has a point for each number of workers, from 1 up: {"workers": n, "samples": samples of all workers in one step,
    "step_s": the seconds of every measured step, "silent_s": the seconds of every measured step without AllReduce}. For one
    worker "silent_s" is empty. The curve is strong ("samples" is the same in all points) or weak (it grows with the workers).
    Times scatter, and now and then a step is slow by accident.

    "efficiency": the efficiency with the most workers, in percent, by the median steps.
    "losses_ms": the milliseconds that a typical step with the most workers loses to each cause, {"communication": ...,
    "slower computing": ...}. Together they are what it takes longer than with perfect scaling; a loss may be below 0.
    "bottleneck": the cause of most of the time lost with the most workers, "communication" or "slower computing". It is None if
    the times cannot tell: too little is lost, or the two causes are too close.
    "overhead_grows": True if a strong curve shows more than one fixed serial part (Amdahl's law) can explain, because overhead
    grows with the workers. False if a fixed part explains it, or the times cannot tell. None for a weak curve.
    """
    raise NotImplementedError("diagnose: how long is a typical step, and by how much could that be wrong?")
