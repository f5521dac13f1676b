"""Solve the rule of 8.5: keep a guess with probability p / q, and replace the first rejected one by one from max(0, p - q)."""

from __future__ import annotations


def verify(draft, q, p, uniform):
    """Return the guesses that are kept, and one more token."""
    kept = []
    for place, token in enumerate(draft):
        if uniform() < p[place][token] / q[place][token]:
            kept.append(token)
            continue
        rest = [max(0.0, large - small) for large, small in zip(p[place], q[place], strict=True)]
        return [*kept, pick(rest, uniform())]
    return [*kept, pick(p[len(draft)], uniform())]


def pick(weights, number):
    """Return a token, each with a probability in proportion to its weight."""
    number *= sum(weights)
    for token, weight in enumerate(weights):
        number -= weight
        if number < 0:
            return token
    return max(range(len(weights)), key=lambda token: weights[token])
