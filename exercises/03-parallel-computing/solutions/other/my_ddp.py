"""Another solution of 3.2: an object for each bucket divides the gradients before it sends them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.distributed as dist


class Bucket:
    """A bucket that is being filled or sent: the gradients that are complete, and their all-reduce."""

    def __init__(self) -> None:
        self.gradients: list[torch.Tensor] = []
        self.numbers = torch.empty(0)
        self.work: dist.Work | None = None

    def send(self) -> None:
        """Divide the gradients, and begin to send them as one tensor."""
        self.numbers = torch.cat([gradient.flatten() for gradient in self.gradients]).div_(dist.get_world_size())
        self.work = dist.all_reduce(self.numbers, async_op=True)

    def unpack(self) -> None:
        """Wait for the mean of each gradient, and write it back."""
        self.work.wait()
        begin = 0
        for gradient in self.gradients:
            gradient.view(-1)[:] = self.numbers[begin : begin + gradient.numel()]
            begin += gradient.numel()


def share_gradients(model: torch.nn.Module, bucket_bytes: int) -> Callable[[], None]:
    """Make `model` data parallel over all ranks of the process group. Return `finish`."""
    buckets = [Bucket()]
    with torch.no_grad():
        whole = torch.nn.utils.parameters_to_vector(model.parameters())
        dist.broadcast(whole, 0)
        torch.nn.utils.vector_to_parameters(whole.clone(), model.parameters())
    for parameter in filter(lambda parameter: parameter.requires_grad, model.parameters()):
        parameter.register_post_accumulate_grad_hook(functools.partial(_collect, buckets, bucket_bytes))
    return functools.partial(_finish, buckets)


def _collect(buckets: list[Bucket], bucket_bytes: int, parameter: torch.Tensor) -> None:
    gradients = buckets[-1].gradients
    gradients.append(parameter.grad)
    if bucket_bytes <= sum(gradient.numel() * gradient.element_size() for gradient in gradients):
        buckets[-1].send()
        buckets.append(Bucket())


def _finish(buckets: list[Bucket]) -> None:
    if buckets[-1].gradients:
        buckets[-1].send()
    while buckets:
        bucket = buckets.pop()
        if bucket.work:
            bucket.unpack()
    buckets.append(Bucket())
