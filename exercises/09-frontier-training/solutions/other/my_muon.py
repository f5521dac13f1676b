"""Solve the sharded Muon of 9.7: send all matrices of an owner as one flat tensor in each direction."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import torch
import torch.distributed as dist


class ShardedMuon:
    """Muon whose work is divided among the ranks. All matrices of a rank are sent in one flat message."""

    def __init__(
        self,
        parameters: dict[str, torch.nn.Parameter],
        lr: float,
        momentum: float,
        weight_decay: float,
        orthogonalise: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """Assign each matrix to a rank, by a heap of loads."""
        self.settings, self.orthogonalise = (lr, momentum, weight_decay), orthogonalise
        hidden = [p for name, p in parameters.items() if p.ndim == 2 and name.split(".")[0] not in ("embedding", "head")]
        self.shares: list[list[torch.Tensor]] = [[] for _ in range(dist.get_world_size())]
        heap = [(0, rank) for rank in range(len(self.shares))]
        for weight in sorted(hidden, key=self.cost, reverse=True):
            load, rank = heapq.heappop(heap)
            self.shares[rank].append(weight)
            heapq.heappush(heap, (load + self.cost(weight), rank))
        self.sums = [torch.zeros_like(weight) for weight in self.shares[dist.get_rank()]]

    @staticmethod
    def cost(weight: torch.Tensor) -> int:
        """Return the work of one matrix."""
        short, long = min(weight.shape), max(weight.shape)
        return 2 * short * short * (2 * long + short)

    @torch.no_grad()
    def step(self) -> None:
        """Reduce the gradients to their owners, update there, and send the new weights to all."""
        rate, momentum, decay = self.settings
        for owner, share in enumerate(self.shares):
            if not share:
                continue
            flat = torch.cat([weight.grad.flatten() for weight in share])
            dist.reduce(flat, owner)
            if owner == dist.get_rank():
                parts = (flat / len(self.shares)).split([weight.numel() for weight in share])
                for weight, part, total in zip(share, parts, self.sums, strict=True):
                    gradient = part.view_as(weight)
                    total.mul_(momentum).add_((1 - momentum) * gradient)
                    step = self.orthogonalise(momentum * total + (1 - momentum) * gradient)
                    tall = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                    weight.copy_(weight - rate * (decay * weight + tall * step))
            flat = torch.cat([weight.flatten() for weight in share])
            dist.broadcast(flat, owner)
            for weight, new in zip(share, flat.split([weight.numel() for weight in share]), strict=True):
                weight.copy_(new.view_as(weight))
