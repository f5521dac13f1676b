"""Solve the iteration of 9.7 with the product of the matrix and its transpose, on the short side."""

from __future__ import annotations

import torch

Plan = list[tuple[float, float, float]]


def orthogonalise(matrix: torch.Tensor, plan: Plan) -> torch.Tensor:
    """Return the matrix after all steps of the plan."""
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / x.norm().clamp_min(1e-30)
    for a, b, c in plan:
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if is_tall else x
