"""Solve the iteration of 9.7 with one small matrix for each iteration on the short side, without a transpose."""

from __future__ import annotations

import torch

Plan = list[tuple[float, float, float]]


def orthogonalise(matrix: torch.Tensor, plan: Plan) -> torch.Tensor:
    """Return the matrix after all steps of the plan."""
    norm = torch.linalg.matrix_norm(matrix)
    if norm == 0:
        return torch.zeros_like(matrix)
    x, is_wide = matrix / norm, matrix.shape[0] <= matrix.shape[1]
    eye = torch.eye(min(matrix.shape), dtype=matrix.dtype, device=matrix.device)
    for a, b, c in plan:
        square = torch.mm(x, x.mT) if is_wide else torch.mm(x.mT, x)
        step = a * eye + torch.mm(square, b * eye + c * square)
        x = torch.mm(step, x) if is_wide else torch.mm(x, step)
    return x
