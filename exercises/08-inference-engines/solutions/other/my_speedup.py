"""Solve the formulas of 8.5 by the closed form of the sum, and by the least time for each token."""

from __future__ import annotations


def expected_tokens(alpha, gamma):
    """Return the sum of a geometric series."""
    if alpha == 1:
        return gamma + 1
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


def best_gamma(alpha, step_ns, draft_ns, largest):
    """Return the number of guesses with the least time for each token."""
    times = [(draft_ns * gamma + step_ns(1 + gamma)) / expected_tokens(alpha, gamma) for gamma in range(largest + 1)]
    return times.index(min(times))
