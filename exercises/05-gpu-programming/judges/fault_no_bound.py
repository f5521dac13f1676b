"""Judge a repaired copy: an overlap of 100 % must mean the best possible pipeline."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "one stream takes {sequential:g} units, and the best pipeline {best:g}: a pipeline that takes {took:g} has an overlap "
        "of {right:.4g}%, but this function returns {given:.4g}%"
    )
}
CASES = ((10, 24, 10, 100), (24, 24, 10, 0), (13, 24, 10, 1100 / 14), (8, 24, 10, 1600 / 14), (26, 40, 26, 100))


def judge(part: Part) -> None:
    """Require that the best possible pipeline has an overlap of 100 %, and that an impossibly fast one has more."""
    overlap_percent = part.function("overlap_percent")
    for took, sequential, best, reference in CASES:
        answer = part.call(overlap_percent, took, sequential, best)
        if abs(answer - reference) > 1e-3:
            raise part.wrong("still", took=took, sequential=sequential, best=best, given=answer, right=reference)
    part.note("the best pipeline has 100 %, and an impossible one has more")
