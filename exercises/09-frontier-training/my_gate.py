"""Your part of 9.2: a router, and two ways to keep its experts equally busy.

You will learn    why the bias that balances must not touch the weights, and why a loss needs the tokens of all ranks
You will produce  `route`, `balance_loss` and `next_bias`, with which the run trains experts in three ways
Try it            gpucourse try 9.2
Your part         the bodies of the three functions; keep their names and parameters
Reading           modules/09-frontier-training/lesson-3-experts.md
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def route(scores: torch.Tensor, bias: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights (tokens, k) and the experts (tokens, k, int64) of each token.

    `scores` (tokens, experts) come from the router; their softmax is the probabilities. A token's experts are the k with
    the largest probability plus `bias` (experts). The weights of a token add up to 1, and have the ratios of the probabilities
    of its experts, whatever the bias is. Gradients go through the weights to the scores.
    """
    raise NotImplementedError("route: which of the two, probability or probability plus bias, decides what?")


def balance_loss(
    probabilities: torch.Tensor, chosen: torch.Tensor, sum_over_ranks: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return the balance loss of the tokens of all ranks, a number that is the same on every rank.

    It is E times the sum over the E experts of f times P. f is the share of all (token, expert) pairs that chose the expert, P
    the mean of its probabilities over all tokens. With equal f and P it is 1.

    `probabilities` (tokens, experts) and `chosen` (tokens, k) belong to this rank's tokens. `sum_over_ranks(tensor)` returns
    the sum of a float tensor over all ranks; gradients go through it to this rank's own summand. All ranks call it equally
    often.
    """
    raise NotImplementedError("balance_loss: which sums over tokens does every rank need from all others?")


def next_bias(bias: torch.Tensor, load: torch.Tensor, speed: float) -> torch.Tensor:
    """Return the bias (experts) for the next step: `speed` is added or subtracted for each expert.

    `load` (experts) has the number of pairs of each expert in this step. An expert with less than the mean must become more
    likely to be chosen, one with more must become less likely. An expert with the mean keeps its bias.
    """
    raise NotImplementedError("next_bias: which function of a difference is 1, 0 or -1?")
