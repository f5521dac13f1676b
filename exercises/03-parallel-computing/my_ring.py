"""Your part of 3.1: your own AllReduce, from messages between neighbours.

You will learn    how a ring sums a tensor over n ranks while each sends only 2(n-1)/n of its bytes, however large n is
You will produce  `ring_all_reduce`, exact on whole numbers, for any number of ranks, with 2(n-1) messages per rank
Try it            gpucourse try 3.1
Your part         the body of `ring_all_reduce`; keep its name and its parameters
Reading           modules/03-parallel-computing/lesson.md, "The ring, step by step"
"""

from __future__ import annotations

import torch
import torch.distributed as dist  # noqa: F401  # for what you write


def ring_all_reduce(tensor: torch.Tensor, rank: int, size: int) -> None:
    """Sum `tensor` over all ranks, in place: afterwards, every rank has the sum. Return nothing.

    `tensor` is contiguous and has any shape and type. It has at least `size` elements, not necessarily a multiple of `size`.

    Each rank sends to the next rank only, and receives from the previous one only (the last rank's next is rank 0): 2 (`size` -
    1) messages, each with one of `size` chunks of about equal length. Use `dist.isend` and `dist.irecv`; what they return has
    `wait`. A single rank has nothing to send.
    """
    raise NotImplementedError("ring_all_reduce: which chunk does rank r send first, if each is to be finished on another rank?")
