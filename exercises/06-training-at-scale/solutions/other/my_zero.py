"""Another solution of 6.2: it has a table of the divided kinds, and counts rounds in a ring."""

from __future__ import annotations

from fractions import Fraction

DIVIDED = {0: (), 1: (2,), 2: (1, 2), 3: (0, 1, 2)}


def bytes_per_rank(
    stage: int, parameters: int, ranks: int, weight: float, gradient: float, optimizer: float
) -> tuple[float, float, float]:
    """Return the three kinds in order, each whole or divided."""
    sizes = [parameters * size for size in (weight, gradient, optimizer)]
    for place in DIVIDED[stage]:
        sizes[place] /= ranks
    return tuple(sizes)


def traffic(stage: int, parameters: int, ranks: int) -> float:
    """Count rounds: a collective in a ring has ranks - 1 rounds, and in each round a rank sends one share."""
    reduce_scatter = all_gather = (ranks - 1) * Fraction(parameters, ranks)
    forward = all_gather
    backward = reduce_scatter + (all_gather if stage == 3 else 0)
    return float(forward + backward)
