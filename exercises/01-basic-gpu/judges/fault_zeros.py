"""Judge a repaired copy: the matrices must not be all zeros."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the largest element of a product is still zero")}
RUNS = {"right": {"rows": [{"error": 1e-7}]}, "wrong": {"rows": [{"error": "nan"}]}}


def judge(part: Part) -> None:
    """Check that the largest element is not zero. Otherwise the error divided by it is not a number."""
    errors = [row["error"] for row in part.metrics["rows"]]
    if not all(isinstance(error, float) for error in errors):
        raise part.wrong("still")
    part.note("every product has elements other than zero")
