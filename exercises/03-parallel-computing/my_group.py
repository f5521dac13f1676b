"""Your part of 3.5: the step of a large batch, computed in micro-batches that send their gradients once.

You will learn    which weight each sample has if pieces and ranks differ, and where no_sync begins and ends
You will produce  `one_group`: the gradient of the big batch, with the all-reduces of one backward pass
Try it            gpucourse try 3.5
Your part         the body of `one_group`; keep its name and its parameters
Reading           modules/03-parallel-computing/lesson-2-training.md, "Gradient accumulation"
"""

from __future__ import annotations

import torch
import torch.distributed as dist  # noqa: F401  # for what you write
from torch.nn.functional import cross_entropy  # noqa: F401  # for what you write
from torch.nn.parallel import DistributedDataParallel


def one_group(
    model: DistributedDataParallel, optimizer: torch.optim.Optimizer, pieces: list[tuple[torch.Tensor, torch.Tensor]]
) -> None:
    """Make one step of `optimizer`, as if the samples of all ranks that count were one batch, with their mean cross-entropy
    as its loss.

    `pieces` are this rank's micro-batches, each with its inputs and its labels. All ranks have the same number of pieces, but
    pieces differ in length, within a rank and between ranks. A sample with the label -100 does not count, and cross_entropy
    leaves it out: in texts, these are the positions after the end. A piece may have no sample that counts. Only one piece at a
    time fits into memory. Gradients from before the call must not count.

    DistributedDataParallel averages over the ranks in every backward pass outside `model.no_sync()`. Let it do so only once.
    """
    raise NotImplementedError("one_group: which weight does each sample have, and which piece sends the gradients?")
