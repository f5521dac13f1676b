"""Solve the settings of 9.7 with a smaller, slower head instead of a smaller output."""

from __future__ import annotations

import math

Shape = tuple[int, int]


def settings(kind: str, shape: Shape, base_shape: Shape) -> tuple[float, float, float]:
    """Return the standard deviation, the factor of the rate, and the factor of the output."""
    if kind == "embedding":
        return 1.0, 1.0, 1.0
    wider = shape[0] / base_shape[0]
    if kind == "head":
        return 1 / (math.sqrt(base_shape[0]) * wider), 1 / wider, 1.0
    return 1 / math.sqrt(shape[0]), 1 / wider, 1.0
