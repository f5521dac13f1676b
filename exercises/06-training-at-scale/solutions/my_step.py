"""A solution of exercise 6.1: take a quarter of the batch at a time, and recompute every block in backward."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

PARTS = 4


def step(model: nn.Module, batch: torch.Tensor, optimizer: torch.optim.Optimizer, device: torch.device) -> torch.Tensor:
    """Train `model` on `batch` with one step of `optimizer`, and return the mean loss over all tokens, without its graph."""
    optimizer.zero_grad()
    total = torch.zeros((), device=device)
    for part in batch.to(device).chunk(PARTS):
        x = model.token(part[:, :-1]) + model.place
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        scores = model.scores(model.norm(x))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), part[:, 1:].flatten())
        loss = loss * len(part) / len(batch)
        loss.backward()
        total += loss.detach()
    optimizer.step()
    return total
