"""Your part of 9.7: make all singular values of a matrix nearly 1, with products of matrices alone.

You will learn    how Muon changes a gradient without a decomposition, which GPUs compute slowly
You will produce  the iteration of Muon, for any list of coefficients
Try it            gpucourse try 9.7
Your part         the body of `orthogonalise`; keep its name and parameters
Reading           modules/09-frontier-training/lesson-8-muon.md
"""

from __future__ import annotations

import torch

Plan = list[tuple[float, float, float]]


def orthogonalise(matrix: torch.Tensor, plan: Plan) -> torch.Tensor:
    """Return a new matrix with the shape, the type and the singular vectors of `matrix` (rows, columns).

    Divide the matrix by a number that makes all singular values at most 1; use its Frobenius norm. Then, for each (a, b, c) of
    `plan`, replace each singular value s by a s + b s^3 + c s^5. Matrices have any shape, in float64 or float32; for a matrix
    of zeros, return zeros.

    Use products of matrices alone, and at most 4 m^2 n + 2 m^3 FLOPs for each entry of the plan (m rows and n columns, m <= n,
    a multiplication and an addition count as two; m and n the other way round if there are fewer columns).
    """
    raise NotImplementedError("orthogonalise: which product of X and its transpose has the squares of the singular values?")
