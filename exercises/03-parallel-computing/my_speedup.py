"""Your part of 3.4: from the raw times of all ranks to a speed-up that you could defend.

You will learn    which times count, which do not, and what must be the same before you may divide two of them
You will produce  `compare`, which computes speed-up and efficiency for both strong and weak scaling, and `waiting`, which tells
                  a slow network from a slow rank
Try it            gpucourse try 3.4
Your part         the bodies of `compare` and `waiting`; keep their names and parameters
Reading           modules/03-parallel-computing/lesson-2-training.md, "Strong and weak scaling" and "Raw times"
"""

from __future__ import annotations


def compare(alone: dict, together: dict) -> tuple[float, float]:
    """Return the speed-up (times) and the efficiency (percent) of the training `together` compared with `alone`, of one rank.

    Each training is {"ranks": n, "batch_per_rank": samples, "warm_up_steps": w, "rows": [row, ...]}. A row is one rank's record
    of one step: {"step": 0, 1, 2 ..., "rank": 0 ... n-1, "compute_s": seconds, "communicate_s": seconds}. Rows come in any
    order.

    Which rows and ranks count, and which figure represents several steps, is your decision. A single slow or fast step must not
    move the result. The times of most steps are spread evenly around the usual one.
    """
    raise NotImplementedError("compare: how long did one step take, for all its ranks together?")


def waiting(training: dict) -> float:
    """Return the percentage of a step that a rank, on average over all ranks, only waits for slower ranks.

    Compute the percentage of each step. Then represent the steps by one figure, as in `compare`.

    The time in which data is really sent is not waiting, but `communicate_s` contains both: an all-reduce ends on all ranks at
    the same time, however early a rank called it.
    """
    raise NotImplementedError("waiting: the last rank that calls an all-reduce waits for nobody. What does its time tell you?")
