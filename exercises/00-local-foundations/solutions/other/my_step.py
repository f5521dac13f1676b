"""The same step with explicit logarithms. The gradients are computed first and then assigned."""

from __future__ import annotations

import torch
from torch import nn


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> float:
    """Return the loss of the batch before the step."""
    chances = model(tokens[:, :-1]).log_softmax(dim=-1)
    surprises = -chances.gather(2, tokens[:, 1:].unsqueeze(2))
    weights = list(model.parameters())
    for weight, gradient in zip(weights, torch.autograd.grad(surprises.mean(), weights), strict=True):
        weight.grad = gradient
    optimizer.step()
    return surprises.mean().item()
