"""Your part of 3.7: break down one point of a scaling curve, and name no bottleneck that noise may explain.

You will learn    speed-up and efficiency of strong and weak scaling; the Karp-Flatt fraction; when a bottleneck may be named
You will produce  a `take_apart` that is right for any number of workers, and names no bottleneck if the noise is too large
Try it            gpucourse try 3.7
Your part         the body of `take_apart`; keep its name, its parameters and the names in what it returns
Reading           modules/03-parallel-computing/lesson-4-bytes.md, "The scaling curve"
"""

from __future__ import annotations

Times = tuple[float, float, float]  # of a step, in ms: low, median, high


def take_apart(mode: str, workers: int, alone: Times, step: Times, silent: Times) -> dict[str, object]:
    """Return four figures from the times of `workers` workers (2 or more): {"speedup", "efficiency", "serial", "bottleneck"}.

    `alone` is the step of one worker with a batch of B samples. `step` is the step of all workers: with `mode` "strong" they
    have B samples together, with "weak" each of them has B. `silent` is the same step without AllReduce. Each is (low, median,
    high).

    "speedup": samples per second of all workers together, divided by those of one worker, by the medians.
    "efficiency": the speed-up in percent of the perfect speed-up.
    "serial": the serial share of the work by Karp and Flatt, 0.25 for a quarter.
    "bottleneck": "communication" or "slower computing", whichever added more to the ideal step, by the medians. It is None if
    neither can be named: if the larger of the two losses, or the difference between them, is not above the noise.

    The noise is the sum of the spreads (high - low) of the ideal step, of `step` and of `silent`. The ideal step is one
    worker's step times the share of B that each worker has now. Its spread shrinks in proportion.
    """
    raise NotImplementedError("take_apart: how many samples does one step process, with one worker and with all of them?")
