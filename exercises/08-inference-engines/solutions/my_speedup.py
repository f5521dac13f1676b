"""Solve the formulas of 8.5 by a sum: the first k - 1 guesses of a step are all accepted with probability alpha ** (k - 1)."""

from __future__ import annotations


def expected_tokens(alpha, gamma):
    """Return 1 + alpha + ... + alpha ** gamma."""
    return sum(alpha**count for count in range(gamma + 1))


def best_gamma(alpha, step_ns, draft_ns, largest):
    """Return the number of guesses that yields the most tokens per nanosecond."""

    def speed(gamma):
        return expected_tokens(alpha, gamma) / (step_ns(gamma + 1) + gamma * draft_ns)

    return max(range(largest + 1), key=speed)
