"""Your part of 3.6: the order in which a stage of a pipeline works with 1F1B.

You will learn    why a stage runs one micro-batch backward before it starts the next one, and how many it must hold meanwhile
You will produce  the order of every stage, for any number of stages and micro-batches
Try it            gpucourse try 3.6
Your part         the body of `order_of_stage`; keep its name and its parameters
Reading           modules/03-parallel-computing/lesson-3-dividing.md, "The pipeline and its bubble"
"""

from __future__ import annotations


def order_of_stage(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the work of this stage in one step: ("forward", i) and ("backward", i) for each micro-batch i, in order.

    Stages and micro-batches are numbered from 0. Forward of i on a stage needs forward of i on the previous stage. Backward of
    i needs backward of i on the next stage; on the last stage, it needs forward of i there. The orders of all stages together
    must

    - never deadlock,
    - keep the activations of at most `stages` - `stage` micro-batches on this stage (forward done, backward not yet),
    - leave no larger bubble than (p - 1) / (m + p - 1), with p = `stages` and m = `micro_batches`, if all forwards take the
      same time and all backwards take the same time.

    `micro_batches` may be smaller than `stages`.
    """
    raise NotImplementedError("order_of_stage: what can this stage do until the first micro-batch comes back to it?")
