"""Judge a repaired copy: the losses must be averaged."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the gradient differs from the big batch's by {error} of its largest element")}
RUNS = {
    "right": {"accumulated": [{"gradient_error": 1e-6}, {"gradient_error": 1e-6}]},
    "wrong": {"accumulated": [{"gradient_error": 7.0}, {"gradient_error": 7.0}]},
}


def judge(part: Part) -> None:
    """Check that the gradient of the pieces is that of the big batch."""
    errors = [row["gradient_error"] for row in part.metrics["accumulated"]]
    if not all(isinstance(error, float) and error < 1e-3 for error in errors):
        raise part.wrong("still", error=errors[0])
    part.note("the gradient of the micro-batches is that of the big batch")
