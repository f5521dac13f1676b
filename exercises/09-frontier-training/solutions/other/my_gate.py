"""Solve the gate of 9.2 with a softmax of the chosen scores alone, one sum over ranks, and comparisons instead of a sign."""

from __future__ import annotations

from collections.abc import Callable

import torch


def route(scores: torch.Tensor, bias: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the softmax over the scores of the chosen experts, which has the ratios of their probabilities."""
    preferred = torch.softmax(scores.detach(), dim=1) + bias
    chosen = preferred.argsort(dim=1, descending=True)[:, :k]
    return torch.softmax(scores.gather(1, chosen), dim=1), chosen


def balance_loss(
    probabilities: torch.Tensor, chosen: torch.Tensor, sum_over_ranks: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return the loss from one vector: counts, sums of probabilities, tokens."""
    tokens, experts = probabilities.shape
    counts = torch.nn.functional.one_hot(chosen, experts).sum((0, 1)).to(probabilities)
    both = sum_over_ranks(torch.cat([counts, probabilities.sum(0), probabilities.new_tensor([tokens])]))
    all_counts, all_sums, count = both[:experts], both[experts : 2 * experts], both[-1]
    return experts * torch.dot(all_counts / (count * chosen.shape[1]), all_sums / count)


def next_bias(bias: torch.Tensor, load: torch.Tensor, speed: float) -> torch.Tensor:
    """Return the bias after a step up for idle experts and a step down for busy ones."""
    scaled, total = load * len(load), load.sum()
    return bias + speed * (scaled < total).to(bias) - speed * (scaled > total).to(bias)
