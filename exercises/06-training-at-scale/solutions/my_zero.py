"""A rank's bytes, and the numbers that it sends."""

from __future__ import annotations


def bytes_per_rank(
    stage: int, parameters: int, ranks: int, weight: float, gradient: float, optimizer: float
) -> tuple[float, float, float]:
    """Stage 1 divides the optimizer's state, 2 the gradients as well, 3 the weights, too."""
    share = parameters / ranks
    weights = weight * (share if stage >= 3 else parameters)
    gradients = gradient * (share if stage >= 2 else parameters)
    state = optimizer * (share if stage >= 1 else parameters)
    return weights, gradients, state


def traffic(stage: int, parameters: int, ranks: int) -> float:
    """Return a reduce-scatter of gradients and an all-gather of weights; with stage 3 one more, for weights that were freed."""
    collectives = 3 if stage == 3 else 2
    return collectives * (ranks - 1) / ranks * parameters
