"""Round after round, until one number is left."""

from __future__ import annotations

from collections.abc import Callable


def add_in_pairs(values: list[float], add: Callable[[float, float], float]) -> float:
    """Return the sum, made in rounds."""
    while len(values) > 1:
        rest = values[len(values) // 2 * 2 :]
        values = [add(*pair) for pair in zip(values[::2], values[1::2])] + rest
    return values[0]
