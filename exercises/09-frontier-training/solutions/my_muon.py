"""Solve the sharded Muon of 9.7: give each matrix, the largest first, to the rank with the least work."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.distributed as dist


def count_flops(matrix: torch.Tensor) -> int:
    """Return the FLOPs of one iteration."""
    m, n = sorted(matrix.shape)
    return 4 * m * m * n + 2 * m**3


class ShardedMuon:
    """Muon on ranks. One rank owns each matrix and its momentum."""

    def __init__(
        self,
        parameters: dict[str, torch.nn.Parameter],
        lr: float,
        momentum: float,
        weight_decay: float,
        orthogonalise: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """Find the owner of each matrix."""
        self.lr, self.momentum, self.weight_decay, self.orthogonalise = lr, momentum, weight_decay, orthogonalise
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.matrices = [p for name, p in parameters.items() if p.dim() == 2 and not name.startswith(("embedding", "head"))]
        loads, self.owners = [0] * self.ranks, [0] * len(self.matrices)
        for place in sorted(range(len(self.matrices)), key=lambda place: -count_flops(self.matrices[place])):
            owner = loads.index(min(loads))
            self.owners[place] = owner
            loads[owner] += count_flops(self.matrices[place])
        owned = [place for place, owner in enumerate(self.owners) if owner == self.rank]
        self.buffers = {place: torch.zeros_like(self.matrices[place]) for place in owned}

    @torch.no_grad()
    def step(self) -> None:
        """Reduce each gradient to its owner, update there, and send the new weights to all."""
        for place, weight in enumerate(self.matrices):
            gradient = weight.grad.clone()
            dist.reduce(gradient, self.owners[place])
            if self.owners[place] == self.rank:
                gradient /= self.ranks
                self.update(weight, gradient, self.buffers[place])
        for place, weight in enumerate(self.matrices):
            dist.broadcast(weight, self.owners[place])

    def update(self, weight: torch.Tensor, gradient: torch.Tensor, buffer: torch.Tensor) -> None:
        """Change one matrix of this rank."""
        buffer.lerp_(gradient, 1 - self.momentum)
        direction = gradient.lerp(buffer, self.momentum)
        step = self.orthogonalise(direction)
        weight.mul_(1 - self.lr * self.weight_decay)
        weight.sub_(self.lr * math.sqrt(max(1, weight.shape[0] / weight.shape[1])) * step)
