"""Your part of 6.2: what each rank holds and sends at the stages of ZeRO, as formulas.

You will learn    which of weights, gradients and optimizer state a stage divides; why two of three stages send no more than DDP
You will produce  two formulas that equal what the ranks of your run hold and send, to the byte
Try it            gpucourse try 6.2
Your part         the bodies of `bytes_per_rank` and `traffic`; keep their names and parameters
Reading           modules/06-training-at-scale/lesson-3-zero.md, "Four stages"
"""

from __future__ import annotations


def bytes_per_rank(
    stage: int, parameters: int, ranks: int, weight: float, gradient: float, optimizer: float
) -> tuple[float, float, float]:
    """Return the bytes of weights, of gradients and of optimizer state that one rank holds: three numbers, in this order.

    `stage` is 0 (DDP: nothing is divided), 1, 2 or 3, as in the ZeRO paper. `weight`, `gradient` and `optimizer` are the bytes
    of each kind for each of the `parameters`: 4, 4 and 8 for AdamW in float32. Whatever is divided is divided evenly among the
    `ranks`. Do not round: a third of a number is a third.
    """
    raise NotImplementedError("bytes_per_rank: what does each stage divide, and what does every rank still hold whole?")


def traffic(stage: int, parameters: int, ranks: int) -> float:
    """Return how many numbers one rank sends in one step, on average over the ranks. Times 4, these are bytes in float32.

    All collectives use a ring (module 3). In an all-gather or a reduce-scatter of N numbers, each rank sends (n - 1) / n of
    them. An all-reduce is a reduce-scatter followed by an all-gather. Stage 1 is the paper's, not that of torch's
    ZeroRedundancyOptimizer.
    """
    raise NotImplementedError("traffic: which collectives does a step of each stage have, and of which tensors?")
