"""Solve the settings of 9.7: hidden matrices get a smaller rate, the head a smaller output."""

from __future__ import annotations

Shape = tuple[int, int]


def settings(kind: str, shape: Shape, base_shape: Shape) -> tuple[float, float, float]:
    """Return the standard deviation, the factor of the rate, and the factor of the output."""
    ratio = base_shape[0] / shape[0]
    if kind == "hidden":
        return shape[0] ** -0.5, ratio, 1.0
    if kind == "head":
        return base_shape[0] ** -0.5, 1.0, ratio
    return 1.0, 1.0, 1.0
