"""Your part of 9.4: the order in which a stage works if its backward pass has two pieces.

You will learn    which gradients another stage waits for, and how the other gradients fill gaps
You will produce  the order of every stage, for any number of stages and micro-batches
Try it            gpucourse try 9.4
Your part         the body of `order_of_stage`; keep its name and its parameters
Reading           modules/09-frontier-training/lesson-5-pipelines.md, "Filling the gaps"
"""

from __future__ import annotations


def order_of_stage(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the work of this stage in one step: ("forward", i), ("inputs", i) and ("weights", i) for each micro-batch i, in
    order.

    Stages and micro-batches are numbered from 0. "forward" of i on a stage needs "forward" of i on the previous stage.
    "inputs" of i computes the gradient of what the stage received. It needs "inputs" of i on the next stage; on the last stage,
    it needs "forward" of i there. "weights" of i computes the gradients of the stage's weights, and needs "inputs" of i on the
    same stage. The orders of all stages together must

    - never deadlock,
    - keep the activations of at most `stages` micro-batches on a stage, from "forward" until "weights" is done,
    - leave no larger bubble than (p - 1)(F + I - W), with p = `stages`, if each "forward" takes F, each "inputs" I and each
      "weights" W, and W is not longer than F and not longer than I.

    `micro_batches` is at least `stages`.
    """
    raise NotImplementedError(
        "order_of_stage: which stage may compute its weight gradients at once, and which one must delay them most?"
    )
