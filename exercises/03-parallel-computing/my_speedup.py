"""Your part of 3.4: from the raw times of all ranks to a speed-up that you could defend.

You will learn    which times count, which do not, and what must be the same before you may divide two of them
You will produce  `compare`, which computes speed-up and efficiency for both strong and weak scaling
Try it            gpucourse try 3.4
Your part         the body of `compare`; keep its name and its parameters
Reading           modules/03-parallel-computing/lesson-2-training.md, "Strong and weak scaling" and "Raw times"
"""

from __future__ import annotations


def compare(alone: dict, together: dict) -> tuple[float, float]:
    """Return the speed-up (times) and the efficiency (percent) of the training `together` compared with `alone`, of one rank.

    Each training is {"ranks": n, "batch_per_rank": samples, "warm_up_steps": w, "rows": [row, ...]}. A row is one rank's record
    of one step: {"step": 0, 1, 2 ..., "rank": 0 ... n-1, "compute_s": seconds, "communicate_s": seconds}. Rows come in any
    order.

    The first `w` steps also set up memory and connections. All ranks begin a step together, and none begins the next one before
    all have finished. The ranks are not equally fast. Where a figure has to stand for several times, take the one that the
    tables of 3.1 show. The batch may differ between the two trainings.
    """
    raise NotImplementedError("compare: how long did one step take, for all its ranks together?")
