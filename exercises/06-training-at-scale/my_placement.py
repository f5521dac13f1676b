"""Your part of 6.1: which blocks to recompute, so that a step fits with the fewest operations.

You will learn    when the memory of a step is highest, and which blocks are worth recomputing
You will produce  the cheapest placement of checkpoints for a limit of memory; the run trains with it
Try it            gpucourse try 6.1
Your part         the body of `place`; keep its name and parameters
Reading           modules/06-training-at-scale/lesson-2-out-of-memory.md, "Which blocks?"
"""

from __future__ import annotations


def place(kept: list[int], left: list[int], operations: list[int], limit: int) -> list[int] | None:
    """Return the numbers of the blocks to recompute, so that activations never exceed `limit` bytes, and as few operations as
    possible are repeated.

    Block i computes after block i - 1, and backward goes from the last block to the first. After its forward, block i has
    `kept[i]` bytes of activations, its output included. If it is recomputed, forward keeps only `left[i]` of them, and its
    backward begins by computing the block again, which takes `operations[i]`. Then it has all `kept[i]` bytes until its
    backward has ended. After the backward of a block, none of its activations exist.

    Return None if no placement fits. There may be 40 blocks, so that not all placements can be tried.
    """
    raise NotImplementedError("place: at which moments is memory highest, and which blocks exist whole at each of them?")
