"""A solution of 3.2: a hook on each parameter fills a bucket, and sends it while backward continues."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist


def share_gradients(model: torch.nn.Module, bucket_bytes: int) -> Callable[[], None]:
    """Make `model` data parallel over all ranks of the process group. Return `finish`."""
    size, ready, pending = dist.get_world_size(), [], []

    def send() -> None:
        bucket = torch.cat([parameter.grad.flatten() for parameter in ready])
        work = dist.all_reduce(bucket, async_op=True)
        pending.append((work, bucket, list(ready)))
        ready.clear()

    def begin(parameter: torch.nn.Parameter) -> None:
        ready.append(parameter)
        if sum(parameter.grad.nbytes for parameter in ready) >= bucket_bytes:
            send()

    def finish() -> None:
        if ready:
            send()
        for work, bucket, parameters in pending:
            work.wait()
            bucket.div_(size)
            for parameter, mean in zip(parameters, bucket.split([each.numel() for each in parameters]), strict=True):
                parameter.grad.copy_(mean.view_as(parameter))
        pending.clear()

    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(begin)
    return finish
