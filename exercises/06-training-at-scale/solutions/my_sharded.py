"""A solution of 6.2: put all weights into one flat tensor, cut it into equal shares, and apply AdamW to one share."""

from __future__ import annotations

import math

import torch
import torch.distributed as dist


class ShardedAdamW:
    """Each rank updates a piece of the flat tensor of all weights."""

    def __init__(
        self,
        parameters: list[torch.nn.Parameter],
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        """Keep two moments for this rank's share, and nothing else."""
        self.parameters, self.lr, self.betas, self.eps, self.weight_decay = parameters, lr, betas, eps, weight_decay
        self.rank, self.ranks, self.steps = dist.get_rank(), dist.get_world_size(), 0
        self.size = math.ceil(sum(p.numel() for p in parameters) / self.ranks)
        self.mean = parameters[0].new_zeros(self.size)
        self.square = parameters[0].new_zeros(self.size)

    def flatten(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        """Return all numbers in a flat tensor, padded with zeros so that every rank has an equal share."""
        flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
        return torch.nn.functional.pad(flat, (0, self.size * self.ranks - flat.numel()))

    @torch.no_grad()
    def step(self) -> None:
        """Average the gradients of this rank's share, update its weights, then gather all weights."""
        self.steps += 1
        gradient = torch.empty_like(self.mean)
        dist.reduce_scatter_tensor(gradient, self.flatten([p.grad for p in self.parameters]))
        gradient /= self.ranks
        weights = self.flatten(self.parameters).chunk(self.ranks)[self.rank].clone()
        weights *= 1 - self.lr * self.weight_decay
        self.mean.lerp_(gradient, 1 - self.betas[0])
        self.square.lerp_(gradient**2, 1 - self.betas[1])
        mean = self.mean / (1 - self.betas[0] ** self.steps)
        square = self.square / (1 - self.betas[1] ** self.steps)
        weights -= self.lr * mean / (square.sqrt() + self.eps)
        whole = weights.new_empty(self.size * self.ranks)
        dist.all_gather_into_tensor(whole, weights)
        sizes = [p.numel() for p in self.parameters]
        for parameter, new in zip(self.parameters, whole[: sum(sizes)].split(sizes), strict=True):
            parameter.copy_(new.view_as(parameter))
