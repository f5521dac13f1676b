"""Your part of 3.7: a point of a scaling curve taken apart, without naming what the noise hides.

You will learn    speed-up and efficiency of strong and weak scaling; what Karp and Flatt say; when a bottleneck may be named
You will produce  a `take_apart` that is right for any number of workers, and says nothing where nothing can be said
Try it            gpucourse try 3.7
Your part         the body of `take_apart`; keep its name, its parameters and the names in what it returns
Reading           modules/03-parallel-computing/lesson-3-dividing.md, "The scaling curve"
"""

from __future__ import annotations

Times = tuple[float, float, float]  # of a step, in ms: low, median, high


def take_apart(mode: str, workers: int, alone: Times, step: Times, silent: Times) -> dict[str, object]:
    """What the times of `workers` workers (2 or more) say: {"speedup", "efficiency", "serial", "bottleneck"}.

    `alone` is the step of one worker with a batch of B samples. `step` is the step of the workers together: with
    `mode` "strong" they have B samples in all, with "weak" each of them has B. `silent` is the same step without AllReduce.
    Each is (low, median, high).

    "speedup": how many times the samples a second of one worker the workers make together, by the medians.
    "efficiency": in percent of the perfect speed-up.
    "serial": the serial share of the work by Karp and Flatt, 0.25 for a quarter.
    "bottleneck": "communication" or "slower computing", whichever added more to the ideal step, by the medians. None where
    nothing can be named: where the larger of the two losses, or the difference between the two, is not above the noise. The
    noise is the sum of the spreads (high - low) of the ideal step, of `step` and of `silent`. The ideal step is one worker's,
    times the share of B that each worker has now; its spread shrinks with it.
    """
    raise NotImplementedError("take_apart: how many samples does a step train, with one worker and with all of them?")
