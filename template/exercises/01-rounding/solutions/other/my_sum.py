"""The same by recursion: the sum of the first half plus the sum of the second."""

from __future__ import annotations

from collections.abc import Callable


def add_in_pairs(values: list[float], add: Callable[[float, float], float]) -> float:
    """Return the sum, made of two halves."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return add(add_in_pairs(values[:middle], add), add_in_pairs(values[middle:], add))
