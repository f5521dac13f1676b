"""A solution of 6.7: hooks around each block fill and empty the one storage of which all its weights are views."""

from __future__ import annotations

import itertools

import torch
import torch.distributed as dist


class Unit:
    """One block, with the hooks that gather its weights before it computes and free them afterwards."""

    def __init__(self, block: torch.nn.Module, wire: torch.dtype) -> None:
        self.ranks, self.wire, self.work = dist.get_world_size(), wire, None
        self.next = self.previous = None
        self.parameters = list(block.parameters())
        flat = torch.cat([parameter.detach().flatten() for parameter in self.parameters])
        self.whole = torch.nn.functional.pad(flat, (0, -flat.numel() % self.ranks))
        self.share = torch.nn.Parameter(self.whole.chunk(self.ranks)[dist.get_rank()].clone())
        pieces = self.whole[: flat.numel()].split([parameter.numel() for parameter in self.parameters])
        for parameter, piece in zip(self.parameters, pieces, strict=True):
            parameter.data = piece.view_as(parameter)
        self.size = self.whole.untyped_storage().nbytes()
        self.free()
        block.register_forward_pre_hook(lambda *_: self.fetch(self.next))
        block.register_forward_hook(lambda *_: self.free())
        block.register_full_backward_pre_hook(lambda *_: self.fetch(self.previous))
        block.register_full_backward_hook(lambda *_: self.reduce())

    def free(self) -> None:
        """Empty the storage: the tensors that autograd saves for backward are views of it."""
        self.whole.untyped_storage().resize_(0)

    def issue(self) -> None:
        """Begin to gather the weights, unless a gather has already begun."""
        if self.work is None:
            self.arrived = torch.empty(self.whole.numel(), dtype=self.wire, device=self.whole.device)
            self.work = dist.all_gather_into_tensor(self.arrived, self.share.detach().to(self.wire), async_op=True)

    def fetch(self, coming: Unit | None) -> None:
        """Make this block whole, and begin to gather the one that comes next."""
        self.issue()
        self.work.wait()
        self.whole.untyped_storage().resize_(self.size)
        self.whole.copy_(self.arrived)
        self.work = self.arrived = None
        if coming is not None:
            coming.issue()

    @torch.no_grad()
    def reduce(self) -> None:
        """Average this rank's share of the gradients, and free the whole weights and gradients."""
        gradient = torch.cat([parameter.grad.flatten() for parameter in self.parameters]).to(self.wire)
        share = torch.empty(self.share.numel(), dtype=self.wire, device=gradient.device)
        dist.reduce_scatter_tensor(share, torch.nn.functional.pad(gradient, (0, -gradient.numel() % self.ranks)))
        self.share.grad = share.float() / self.ranks
        for parameter in self.parameters:
            parameter.grad = None
        self.free()


def shard(blocks: list[torch.nn.Module], wire: torch.dtype) -> list[torch.nn.Parameter]:
    """Divide each block, link it with its neighbours, and return this rank's shares."""
    units = [Unit(block, wire) for block in blocks]
    for first, second in itertools.pairwise(units):
        first.next, second.previous = second, first
    return [unit.share for unit in units]
