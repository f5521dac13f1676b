"""Solve the gate of 9.2: choose by probability plus bias, weight by probability, and step by a sign."""

from __future__ import annotations

from collections.abc import Callable

import torch


def route(scores: torch.Tensor, bias: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the probabilities of the chosen experts, divided by their sum, and these experts."""
    probabilities = scores.softmax(-1)
    chosen = (probabilities + bias).topk(k, -1).indices
    weights = probabilities.gather(-1, chosen)
    return weights / weights.sum(-1, keepdim=True), chosen


def balance_loss(
    probabilities: torch.Tensor, chosen: torch.Tensor, sum_over_ranks: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return the number of experts times the sum of the products of each expert's share of the pairs and mean probability."""
    experts = probabilities.shape[-1]
    counts = sum_over_ranks(torch.bincount(chosen.flatten(), minlength=experts).to(probabilities.dtype))
    sums = sum_over_ranks(probabilities.sum(0))
    tokens = counts.sum() / chosen.shape[-1]
    return experts * (counts / counts.sum() * sums / tokens).sum()


def next_bias(bias: torch.Tensor, load: torch.Tensor, speed: float) -> torch.Tensor:
    """Return a step towards the mean load."""
    return bias + speed * (load.double().mean() - load).sign().to(bias.dtype)
