"""Data parallel training in buckets of at least 100 numbers. They are divided before they are sent, and split up afterwards."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist


class Sharing:
    """Complete gradients that have not been sent yet, and buckets that are being sent."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.ready: list[torch.Tensor] = []
        self.sent: list[tuple[dist.Work, torch.Tensor, list[torch.Tensor]]] = []
        with torch.no_grad():
            whole = torch.nn.utils.parameters_to_vector(model.parameters())
            dist.broadcast(whole, 0)
            torch.nn.utils.vector_to_parameters(whole.clone(), model.parameters())
        for parameter in filter(lambda parameter: parameter.requires_grad, model.parameters()):
            parameter.register_post_accumulate_grad_hook(self.collect)

    def collect(self, parameter: torch.Tensor) -> None:
        """Add a gradient to the bucket, and send the bucket when it is full."""
        self.ready.append(parameter.grad)
        if sum(gradient.numel() for gradient in self.ready) >= 100:
            self.send()

    def send(self) -> None:
        """Send the complete gradients as one tensor."""
        if self.ready:
            bucket = torch.cat([gradient.flatten() for gradient in self.ready]) / dist.get_world_size()
            self.sent.append((dist.all_reduce(bucket, async_op=True), bucket, self.ready))
            self.ready = []

    def finish(self) -> None:
        """Wait for all buckets, and put every mean into its gradient."""
        self.send()
        for work, bucket, gradients in self.sent:
            work.wait()
            for gradient, mean in zip(gradients, bucket.split([gradient.numel() for gradient in gradients]), strict=True):
                gradient.copy_(mean.view_as(gradient))
        self.sent = []


def share_gradients(model: torch.nn.Module) -> Callable[[], None]:
    """Make `model` data parallel over all ranks of the process group. Return `finish`."""
    return Sharing(model).finish
