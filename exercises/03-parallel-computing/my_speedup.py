"""Your part of 3.4: from the raw times of all ranks to a speed-up that you could defend.

You will learn    which times count, which do not, and what must be alike before two of them may be divided
You will produce  `compare`, which gives speed-up and efficiency for strong and weak scaling alike
Try it            gpucourse try 3.4
Your part         the body of `compare`; keep its name and its parameters
Reading           modules/03-parallel-computing/lesson-2-training.md, "Strong and weak scaling" and "Raw times"
"""

from __future__ import annotations


def compare(alone: dict, together: dict) -> tuple[float, float]:
    """Speed-up (times) and efficiency (percent) of the training `together` over `alone`, the training by one rank.

    Each is {"ranks": n, "batch_per_rank": samples, "warm_up_steps": w, "rows": [row, ...]}, and a row is what one rank wrote of
    one step, in any order: {"step": 0, 1, 2 ..., "rank": 0 ... n-1, "compute_s": seconds, "communicate_s": seconds}.
    The first `w` steps pay for memory and connections, and do not count. A step is over when its slowest rank is through, and
    takes what that rank took to compute and to communicate. The median step stands for all, for some step always stumbles.
    The batch of all ranks together may differ between the two, so compare samples a second.
    """
    raise NotImplementedError("compare: how long did one step take, for all of its ranks together?")
