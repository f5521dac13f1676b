"""A step yields at least k tokens if its first k - 1 guesses are accepted: the sum of the powers of alpha."""

from __future__ import annotations


def expected_tokens(alpha, gamma):
    """Return 1 + alpha + ... + alpha ** gamma."""
    return sum(alpha**count for count in range(gamma + 1))


def best_gamma(alpha, step_ns, draft_ns, largest):
    """Compare tokens per nanosecond of every number of guesses."""

    def speed(gamma):
        return expected_tokens(alpha, gamma) / (step_ns(gamma + 1) + gamma * draft_ns)

    return max(range(largest + 1), key=speed)
