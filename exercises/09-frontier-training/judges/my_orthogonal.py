"""Judge my_orthogonal.py of 9.7 by the singular values of its result, and by the FLOPs of its products."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Part, Verdict, Way

QUINTIC, FINISH = (3.4445, -4.7750, 2.0315), (2.0, -1.5, 0.5)
TOLERANCE = 1e-9
WAYS = {
    "not-normalised": Way(
        "you did not divide the matrix first: its largest singular value is {largest:.1f}, and each iteration "
        "raises such values"
        " to the fifth power. Divide by the Frobenius norm first",
        ("x = x / x.norm().clamp_min(1e-30)", "x = x + 0"),
    ),
    "largest-entry": Way(
        "you divided by the largest entry. The matrix then still has a singular value of {largest:.1f}, which grows. Divide "
        "by the Frobenius norm, which no singular value exceeds",
        ("x.norm().clamp_min(1e-30)", "x.abs().max()"),
    ),
    "elementwise": Way(
        "you multiplied element by element. Singular values change as in a polynomial only if you multiply matrices: `@`, not "
        "`*`",
        ("c * square @ square", "c * square * square"),
    ),
    "same-coefficients": Way(
        "every iteration used the first coefficients: a plan has different ones for each iteration",
        ("for a, b, c in plan:", "for a, b, c in plan[:1] * len(plan):"),
    ),
    "fifth-power-missing": Way(
        "the result has a s + b s^3 for each singular value s: the term c s^5 is missing",
        ("(b * square + c * square @ square)", "(b * square)"),
    ),
    "divided-by-zero": Way(
        "for a matrix of zeros you return values that are not finite: you divided by its norm, which is 0. A layer that got "
        "no gradient has such a matrix",
        (".clamp_min(1e-30)", ""),
    ),
    "fewer-bits": Way(
        "in float64 the singular values are off by {off:.0e}: you computed in fewer bits than the matrix has",
        ("x = matrix.T if is_tall else matrix", "x = (matrix.T if is_tall else matrix).float()"),
    ),
    "tall": Way(
        "{flops:,} FLOPs for {rows} x {columns}, but {limit:,} are enough: X X^T has the square of the long "
        "side. Transpose a tall"
        " matrix before and after",
        ("is_tall = matrix.shape[0] > matrix.shape[1]", "is_tall = False"),
    ),
    "decomposed": Way(
        "your products of matrices have only {flops:,} FLOPs for {rows} x {columns}: a decomposition did the rest. GPUs need "
        "many times as long for it, so use products alone",
        (
            "    for a, b, c in plan:\n",
            "    left, values, right = torch.linalg.svd(x, full_matrices=False)\n"
            "    for a, b, c in plan:\n        values = a * values + b * values**3 + c * values**5\n"
            "    x = left * values @ right\n    for a, b, c in plan[:0]:\n",
        ),
    ),
    "input-changed": Way(
        "you changed the matrix that was passed. The optimizer still needs its gradient: return a new tensor",
        ("x = x / x.norm().clamp_min(1e-30)", "x /= x.norm().clamp_min(1e-30)"),
    ),
}
TRIALS = (
    (4, 6, [QUINTIC], "4 x 6, one iteration"),
    (6, 6, [QUINTIC, FINISH], "6 x 6, two iterations"),
    (16, 24, [QUINTIC] * 5, "16 x 24, 5 iterations"),
    (64, 16, [QUINTIC] * 8 + [FINISH] * 2, "64 x 16, 8 and 2 iterations"),
    (5, 1, [FINISH] * 3, "5 x 1, 3 iterations"),
)


def judge(part: Part) -> None:
    """Judge five shapes and plans, a matrix of zeros, and the types."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    orthogonalise = part.function("orthogonalise")
    for rows, columns, plan, case in TRIALS:
        source = torch.Generator().manual_seed(rows)
        matrix = 3 * torch.randn(rows, columns, generator=source, dtype=torch.float64)
        before = matrix.clone()
        with FlopCounterMode(display=False) as counter:
            result = part.call(orthogonalise, matrix, list(plan), case=case)
        if not isinstance(result, torch.Tensor) or result.shape != matrix.shape:
            shape = list(getattr(result, "shape", []))
            text = f"it returned {type(result).__name__} {shape or ''} instead of a tensor [{rows}, {columns}]"
            raise Verdict("failed", "no-matrix", text, case)
        _check_values(part, before, plan, result, case)
        if not torch.equal(matrix, before):
            raise part.wrong("input-changed", case)
        _check_flops(part, rows, columns, len(plan), counter.get_total_flops(), case)
    zeros = torch.zeros(3, 4, dtype=torch.float64)
    if not bool((part.call(orthogonalise, zeros, [QUINTIC], case="3 x 4 zeros") == 0).all()):
        raise part.wrong("divided-by-zero", "3 x 4 zeros")
    single = part.call(orthogonalise, torch.ones(2, 3), [QUINTIC], case="float32")
    if single.dtype != torch.float32:
        raise Verdict("failed", "other", f"for a matrix in float32 you return {single.dtype}: keep the type", "float32")
    part.note("equal to the polynomial of the singular values, for five shapes and plans")
    part.note("products with the short side only")


def _iterate(matrix: Any, plan: Any, *, norm: Any, way: str = "") -> Any:
    """Return the matrix after the plan, computed by its singular values, or with the mistake of a way."""
    import torch

    x = matrix / norm
    for a, b, c in plan[:1] * len(plan) if way == "same-coefficients" else plan:
        if way == "elementwise":
            x = _multiply_elements(x, (a, b, c))
            continue
        u, values, vt = torch.linalg.svd(x, full_matrices=False)
        fifth = 0 if way == "fifth-power-missing" else c
        x = u * (a * values + b * values**3 + fifth * values**5) @ vt
    return x


def _multiply_elements(x: Any, triple: tuple[float, float, float]) -> Any:
    a, b, c = triple
    wide = x.T if x.shape[0] > x.shape[1] else x
    square = wide @ wide.T
    wide = a * wide + (b * square + c * square * square) @ wide
    return wide.T if x.shape[0] > x.shape[1] else wide


def _check_values(part: Part, matrix: Any, plan: Any, result: Any, case: str) -> None:
    """Raise the verdict if the singular values of the result are not the polynomials of the matrix's singular values."""
    import torch

    norm = matrix.norm()
    right = _iterate(matrix, plan, norm=norm)
    off = float((result.double() - right).abs().max())
    if off <= TOLERANCE:
        return
    largest = float(torch.linalg.svdvals(matrix)[0])
    results = {
        "not-normalised": (_iterate(matrix, plan, norm=1.0), {"largest": largest}),
        "largest-entry": (_iterate(matrix, plan, norm=matrix.abs().max()), {"largest": largest / float(matrix.abs().max())}),
        "elementwise": (_iterate(matrix, plan, norm=norm, way="elementwise"), {}),
        "same-coefficients": (_iterate(matrix, plan, norm=norm, way="same-coefficients"), {}),
        "fifth-power-missing": (_iterate(matrix, plan, norm=norm, way="fifth-power-missing"), {}),
    }
    for way, (wrong, values) in results.items():
        if torch.allclose(result.double(), wrong, rtol=1e-7, atol=TOLERANCE):
            raise part.wrong(way, case, **values)
    if off < 0.02:
        raise part.wrong("fewer-bits", case, off=off)
    answers, its = torch.linalg.svdvals(result.double().nan_to_num()), torch.linalg.svdvals(right)
    text = f"the singular values are {float(answers[-1]):.3f} to {float(answers[0]):.3f} instead of "
    text += f"{float(its[-1]):.3f} to {float(its[0]):.3f}"
    if torch.allclose(answers, its, atol=1e-6):
        text = "the singular values are right, but the singular vectors differ from the matrix's"
    raise Verdict("failed", "other", text, case)


def _check_flops(part: Part, rows: int, columns: int, iterations: int, flops: int, case: str) -> None:
    """Raise the verdict if the iterations use more FLOPs than needed, or fewer than two products with the matrix."""
    m, n = sorted((rows, columns))
    limit = iterations * (4 * m * m * n + 2 * m**3)
    slack = 2 * m * m * n  # a product before the first iteration
    if flops < 4 * m * m * n:  # less than one product there and one back
        raise part.wrong("decomposed", case, flops=flops, rows=rows, columns=columns)
    if flops > limit + slack:
        raise part.wrong("tall", case, flops=flops, rows=rows, columns=columns, limit=limit)
