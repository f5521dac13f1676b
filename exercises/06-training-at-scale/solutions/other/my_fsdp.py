"""Another solution of 6.7: each block is a function of its input and its share, and backward computes the function again."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.functional import pad


class Gathers:
    """The gathers of all blocks by number. Each is begun first, and waited for later."""

    def __init__(self, shares: list[torch.nn.Parameter], wire: torch.dtype) -> None:
        self.shares, self.wire, self.begun = shares, wire, {}

    def begin(self, number: int) -> None:
        if 0 <= number < len(self.shares) and number not in self.begun:
            share = self.shares[number].detach().to(self.wire)
            whole = share.new_empty(share.numel() * dist.get_world_size())
            self.begun[number] = whole, dist.all_gather_into_tensor(whole, share, async_op=True)

    def take(self, number: int, coming: int) -> torch.Tensor:
        self.begin(number)
        whole, work = self.begun.pop(number)
        work.wait()
        self.begin(coming)
        return whole.float()


class Divided(torch.autograd.Function):
    """A block without weights of its own."""

    @staticmethod
    def forward(ctx, x, _share, number, compute, gathers):
        ctx.save_for_backward(x)
        ctx.number, ctx.compute, ctx.gathers = number, compute, gathers
        return compute(x, gathers.take(number, number + 1))[0]

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        whole = ctx.gathers.take(ctx.number, ctx.number - 1)
        with torch.enable_grad():
            y, weights = ctx.compute(x, whole, needs_gradients=True)
        x_gradient, *gradients = torch.autograd.grad(y, [x, *weights], gradient)
        release(weights)
        ranks = dist.get_world_size()
        flat = torch.cat([item.flatten() for item in gradients]) / ranks
        flat = pad(flat, (0, -flat.numel() % ranks)).to(ctx.gathers.wire)
        share = flat.new_empty(flat.numel() // ranks)
        dist.reduce_scatter_tensor(share, flat)
        return x_gradient, share.float(), None, None, None


def shard(blocks: list[torch.nn.Module], wire: torch.dtype) -> list[torch.nn.Parameter]:
    """Replace the forward of each block by a function that also takes its share, and return the shares."""
    shares: list[torch.nn.Parameter] = []
    gathers = Gathers(shares, wire)
    for number, block in enumerate(blocks):
        weights, ranks = list(block.parameters()), dist.get_world_size()
        flat = torch.cat([weight.detach().flatten() for weight in weights])
        shares.append(torch.nn.Parameter(pad(flat, (0, -flat.numel() % ranks)).chunk(ranks)[dist.get_rank()].clone()))
        shapes = [weight.shape for weight in weights]

        def compute(x, whole, *, needs_gradients=False, weights=weights, shapes=shapes, forward=block.forward):
            pieces = whole[: sum(shape.numel() for shape in shapes)].split([shape.numel() for shape in shapes])
            for weight, piece, shape in zip(weights, pieces, shapes, strict=True):
                weight.data = piece.view(shape)
            y = forward(x)
            if not needs_gradients:
                release(weights)
            return y, weights

        def forward(x, number=number, compute=compute):
            return Divided.apply(x, shares[number], number, compute, gathers)

        release(weights)
        block.forward = forward
    return shares


def release(weights: list[torch.nn.Parameter]) -> None:
    for weight in weights:
        weight.data = torch.empty(0)
