"""Judge a repaired copy: bus bandwidth must include its factor."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("4 GB gathered over 4 ranks in 0.5 s are 6 GB/s on the link, but the copy computes {given:.3g}")}


def judge(part: Part) -> None:
    """Check that bus bandwidth is the algorithm bandwidth times the factor."""
    answer = part.call(part.function("busbw"), "all_gather", 4e9, 0.5, 4)
    if abs(answer - 6.0) > 1e-9:
        raise part.wrong("still", given=answer)
    part.note("4 GB gathered over 4 ranks in 0.5 s are 6 GB/s on the link")
