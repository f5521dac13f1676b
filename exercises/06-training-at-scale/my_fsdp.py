"""Your part of 6.7: fully sharded data parallelism by hand.

You will learn    when a rank needs whole weights, how their memory is really freed, and how a gather hides behind a computation
You will produce  blocks whose weights, gradients and moments are divided among the ranks, and that train as DDP does
Try it            gpucourse try 6.7
Your part         the body of `shard`; keep its name and parameters, and add functions as you like
Reading           modules/06-training-at-scale/lesson-12-fsdp.md
"""

from __future__ import annotations

import torch
import torch.distributed as dist  # noqa: F401  # for what you write


def shard(blocks: list[torch.nn.Module], wire: torch.dtype) -> list[torch.nn.Parameter]:
    """Divide the weights of each block among the ranks of the default group. Return this rank's shares, one for each block.

    Every rank passes equal blocks. They compute in the order of the list, each once in a forward pass, and their input needs a
    gradient. An optimizer gets the shares, and nothing else of the blocks.

    A share is flat and in float32: the block's parameters in their order, flattened, padded with zeros up to a multiple of the
    number of ranks, cut into equal pieces; rank r has piece r. Between two steps, a rank holds only shares of the blocks.

    A block computes in float32, forward and backward, with whole weights, which an all-gather of the shares delivers as numbers
    of type `wire`. They exist only while they are needed: at most two whole blocks are in memory. While a block computes, the
    gather of the block that comes next is already under way (`async_op=True`), forward and backward.

    After backward, the `grad` of a share is the mean over the ranks, in float32. It comes from a reduce-scatter of numbers of
    type `wire`. No rank has the mean of a whole block.
    """
    raise NotImplementedError("shard: who needs a block's whole weights, from when, and until when?")
