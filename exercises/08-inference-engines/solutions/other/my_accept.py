"""Solve the rule of 8.5 with all random numbers drawn first, and a search in the cumulated remainder."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate


def verify(draft, q, p, uniform):
    """Return the guesses before the first rejection, and a token from the distribution that follows."""
    numbers = [uniform() for _ in range(len(draft) + 1)]
    count = 0
    while count < len(draft) and numbers[count] * q[count][draft[count]] < p[count][draft[count]]:
        count += 1
    weights = list(p[count])
    if count < len(draft):
        weights = [large - min(large, small) for large, small in zip(p[count], q[count], strict=True)]
    sums = list(accumulate(weights))
    return [*draft[:count], min(bisect_right(sums, numbers[-1] * sums[-1]), len(sums) - 1)]
