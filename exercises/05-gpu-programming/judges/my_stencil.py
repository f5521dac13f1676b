"""Judge my_stencil.py of 5.7 by its numbers, by the arrays that must not change, and by its bytes. No time is measured."""

from __future__ import annotations

from typing import Any

import torch

from gpucourse.judge import Part, Verdict, Way

SHAPES = ((134, 90), (67, 35), (3, 3))  # rows, columns
COEFFICIENTS = (0.1, 0.24)
TOLERANCE = 1e-5  # of the largest number: float32 reaches 1e-7, float16 no better than 1e-3
MAX_PERCENT = 60  # of the bytes of the provided step
MIN_BYTES = 8  # per point: u is read once, and out is written once
WAYS = {
    "temporaries": Way(
        "the numbers are right, but it moves {given:,.0f} bytes per point, {percent:.0f}% of the {delivered:,.0f} that the "
        "provided step moves: each a + b without out= or in place writes a new tensor, which the next operation reads again",
        (
            "inner.add_(u[first:end, :-2], alpha=c).add_(u[first:end, 2:], alpha=c)",
            "inner.add_(c * (u[first:end, :-2] + u[first:end, 2:]))",
        ),
    ),
    "not-counted": Way(
        "the numbers are right, but only {given:.0f} bytes per point pass through torch's operations, and at least 8 have to: "
        "bytes that NumPy or compiled code reads and writes are not counted. Use operations of torch",
        (
            "    for first in range(1, last, ROWS):",
            "    u, out = u.numpy(), out.numpy()\n    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]\n"
            "    out[1:-1, 1:-1] = u[1:-1, 1:-1] + c * (around - 4 * u[1:-1, 1:-1])\n    for first in range(0):",
        ),
    ),
    "input-changed": Way(
        "it changed u: the next points then have new neighbours, and the caller still needs u",
        ("torch.mul(u[first:end, 1:-1], 1 - 4 * c, out=inner)", "inner.copy_(u[first:end, 1:-1].mul_(1 - 4 * c))"),
    ),
    "not-in-out": Way(
        "out did not change: the caller looks there, not at what you return. Write into out[1:-1, 1:-1]",
        ("inner = out[first:end, 1:-1]", "inner = out[first:end, 1:-1].clone()"),
    ),
    "edge-changed": Way(
        "the edge of out changed: its first and last row and column keep their temperature",
        ("    last = u.shape[0] - 1\n", "    last = u.shape[0] - 1\n    out.copy_(u)\n"),
    ),
    "rows-missing": Way(
        "{rows} rows of the inner points did not change: if the block does not divide the rows, the last block is shorter",
        ("range(1, last, ROWS)", "range(1, last - ROWS + 1, ROWS)"),
    ),
    "centre-forgotten": Way(
        "that is u + c * (up + down + left + right): the term - 4 * u is missing, and a plate of one temperature heats itself",
        ("1 - 4 * c", "1"),
    ),
    "neighbours-missing": Way(
        "the {which} neighbours are missing: heat flows from all four sides",
        (".add_(u[first:end, 2:], alpha=c)", ""),
    ),
    "rounded": Way(
        "the numbers are off by {error:.0e} of the largest: that is a format of 16 bits. Halving the bytes by halving the "
        "digits is another exercise; stay with float32 here",
        ("torch.mul(u[first:end, 1:-1], 1 - 4 * c, out=inner)", "inner.copy_(u[first:end, 1:-1].half().mul_(1 - 4 * c))"),
    ),
}


def judge(part: Part) -> None:
    """Judge the numbers for several shapes and coefficients, and the bytes for the largest shape."""
    from roof_kernels import step_slowly
    from traffic import ByteCounter

    torch.set_num_threads(1)
    step = part.function("step")
    for shape in SHAPES:
        for c in COEFFICIENTS:
            _judge_numbers(part, step, shape, c)
    u, out = _make_plate(SHAPES[0])
    with ByteCounter() as yours:
        part.call(step, u, out, 0.1)
    with ByteCounter() as delivered:
        step_slowly(u, out, 0.1)
    points = (SHAPES[0][0] - 2) * (SHAPES[0][1] - 2)
    percent = 100 * yours.total / delivered.total
    bytes_a_point = {"given": yours.total / points, "delivered": delivered.total / points}
    if bytes_a_point["given"] < MIN_BYTES:
        raise part.wrong("not-counted", **bytes_a_point)
    if percent > MAX_PERCENT:
        raise part.wrong("temporaries", f"{SHAPES[0][0]} x {SHAPES[0][1]} points", percent=percent, **bytes_a_point)
    part.note(f"{bytes_a_point['given']:.0f} bytes per point in {yours.operations} operations; as delivered "
              f"{bytes_a_point['delivered']:.0f}")  # fmt: skip


def _make_plate(shape: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a plate, and a result with a different edge. Both are the same at each call."""
    random = torch.Generator().manual_seed(shape[0])
    return torch.rand(shape, generator=random), torch.rand(shape, generator=random) - 2


def _judge_numbers(part: Part, step: Any, shape: tuple[int, int], c: float) -> None:
    case = f"{shape[0]} x {shape[1]} points, c = {c}"
    (u, out), (initial, old) = _make_plate(shape), _make_plate(shape)
    part.call(step, u, out, c, case=case)
    if out.shape != shape or out.dtype != torch.float32:
        raise Verdict("failed", "shape", f"out has become {out.dtype} of shape {tuple(out.shape)}", case)
    if not torch.equal(u, initial):
        raise part.wrong("input-changed", case)
    inner, right = out[1:-1, 1:-1].double(), _step_right(initial, c)
    error = ((inner - right).abs().max() / right.abs().max()).item()
    untouched = inner == old[1:-1, 1:-1]
    if untouched.all():
        raise part.wrong("not-in-out", case)
    if not torch.equal(_without_inner(out), _without_inner(old)):
        raise part.wrong("edge-changed", case)
    if error <= TOLERANCE:
        return
    if (rows := int(untouched.all(dim=1).sum())) > 0:
        raise part.wrong("rows-missing", case, rows=rows)
    _name_wrong_numbers(part, initial, c, inner, case)
    raise part.wrong("rounded", case, error=error) if error < 0.01 else _other(inner, right, case)


def _step_right(u: torch.Tensor, c: float) -> torch.Tensor:
    """Return the inner points after a step, in double precision."""
    wide = u.double()
    around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return wide[1:-1, 1:-1] + c * (around - 4 * wide[1:-1, 1:-1])


def _without_inner(grid: torch.Tensor) -> torch.Tensor:
    edge = grid.clone()
    edge[1:-1, 1:-1] = 0
    return edge


def _name_wrong_numbers(part: Part, u: torch.Tensor, c: float, inner: torch.Tensor, case: str) -> None:
    """Raise the verdict of the mistake that leads to exactly these numbers. Return if no mistake does."""
    wide, right = u.double(), _step_right(u, c)
    sides = {"upper": wide[:-2, 1:-1], "lower": wide[2:, 1:-1], "left": wide[1:-1, :-2], "right": wide[1:-1, 2:]}
    if _close(inner, right + 4 * c * wide[1:-1, 1:-1]):
        raise part.wrong("centre-forgotten", case)
    for side_name, side in sides.items():
        if _close(inner, right - c * side):
            raise part.wrong("neighbours-missing", case, which=side_name)


def _close(answer: torch.Tensor, right: torch.Tensor) -> bool:
    return bool(answer.numel()) and torch.allclose(answer, right, rtol=0, atol=1e-5)


def _other(inner: torch.Tensor, right: torch.Tensor, case: str) -> Verdict:
    """Return the verdict that shows the point with the largest error."""
    row, column = divmod(int((inner - right).abs().nan_to_num(torch.inf).argmax()), inner.shape[1])
    says = (f"out[{row + 1}, {column + 1}] is {inner[row, column]:.4g}, but u + c * (up + down + left + right - 4 * u) is "
            f"{right[row, column]:.4g} there")  # fmt: skip
    return Verdict("failed", "other", says, case)
