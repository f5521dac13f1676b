"""Your part of 3.2: your own data parallel training, as DistributedDataParallel does it.

You will learn    where the gradients of all ranks become one, and why that takes less time than it seems: backward overlaps it
You will produce  `share_gradients`, which gives every rank the same gradients as DistributedDataParallel
Try it            gpucourse try 3.2
Your part         the body of `share_gradients`; keep its name and its parameter
Reading           modules/03-parallel-computing/lesson-2-training.md, "DistributedDataParallel"
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist  # noqa: F401  # for what you write


def share_gradients(model: torch.nn.Module) -> Callable[[], None]:
    """Make `model` data parallel over all ranks of the process group. Return the function `finish`.

    First, send rank 0's parameters to every rank. In every backward pass, begin the all-reduce of each gradient
    (`async_op=True`) as soon as the gradient is complete (`register_post_accumulate_grad_hook`); backward must continue.

    `finish()` is called after each `loss.backward()`, many times in a training run. When it returns, every `.grad` is the mean
    over all ranks. A parameter with `requires_grad=False`, or without a gradient, stays unchanged. Buckets are not needed.
    """
    raise NotImplementedError("share_gradients: which hook does torch call when the gradient of a parameter is complete?")
