"""A solution of 6.2: a rank's bytes, and the numbers that it sends."""

from __future__ import annotations


def bytes_per_rank(
    stage: int, parameters: int, ranks: int, weight: float, gradient: float, optimizer: float
) -> tuple[float, float, float]:
    """Divide the optimizer's state from stage 1 on, the gradients from 2 on, and the weights at 3."""
    share = parameters / ranks
    weights = weight * (share if stage >= 3 else parameters)
    gradients = gradient * (share if stage >= 2 else parameters)
    state = optimizer * (share if stage >= 1 else parameters)
    return weights, gradients, state


def traffic(stage: int, parameters: int, ranks: int) -> float:
    """Count a reduce-scatter of gradients and an all-gather of weights; at stage 3 one more, for weights that were freed."""
    collectives = 3 if stage == 3 else 2
    return collectives * (ranks - 1) / ranks * parameters
