"""Another solution of 6.2, tensor by tensor: a share of each is a separate parameter, which torch's AdamW updates."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn


class ShardedAdamW:
    """Each rank has a piece of every weight, and torch.optim.AdamW for these pieces."""

    def __init__(
        self,
        parameters: list[torch.nn.Parameter],
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        """Copy this rank's pieces from the weights."""
        self.parameters, self.rank, self.ranks = parameters, dist.get_rank(), dist.get_world_size()
        self.pieces = [nn.Parameter(self.divide(p.detach())[self.rank].clone()) for p in parameters]
        self.adamw = torch.optim.AdamW(self.pieces, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def divide(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return equal pieces, one per rank; the last ones are padded with zeros."""
        size = -(-tensor.numel() // self.ranks)
        padded = nn.functional.pad(tensor.flatten(), (0, size * self.ranks - tensor.numel()))
        return list(padded.split(size))

    def step(self) -> None:
        """Get the gradients of this rank's pieces, run AdamW, then put all pieces back into their weights."""
        for piece, parameter in zip(self.pieces, self.parameters, strict=True):
            piece.grad = torch.empty_like(piece)
            dist.reduce_scatter(piece.grad, self.divide(parameter.grad / self.ranks))
        self.adamw.step()
        self.adamw.zero_grad(set_to_none=True)
        for piece, parameter in zip(self.pieces, self.parameters, strict=True):
            everybody = [torch.empty_like(piece) for _ in range(self.ranks)]
            dist.all_gather(everybody, piece.detach())
            parameter.data.copy_(torch.cat(everybody)[: parameter.numel()].view_as(parameter))
