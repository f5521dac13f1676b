"""One step of training: guess, compare with what came next, clear the old gradients, go backward, step."""

from __future__ import annotations

import torch
from torch import nn


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> float:
    """Return the loss of the batch before the step."""
    seen, wanted = tokens[:, :-1], tokens[:, 1:]
    scores = model(seen)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
