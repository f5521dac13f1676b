"""Data parallel training: a hook on each parameter starts its all-reduce while backward continues."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist


def share_gradients(model: torch.nn.Module) -> Callable[[], None]:
    """Make `model` data parallel over all ranks of the process group. Return `finish`."""
    size, pending = dist.get_world_size(), []

    def begin(parameter: torch.nn.Parameter) -> None:
        work = dist.all_reduce(parameter.grad, async_op=True)
        pending.append((work, parameter))

    def finish() -> None:
        for work, parameter in pending:
            work.wait()
            parameter.grad /= size
        pending.clear()

    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(begin)
    return finish
