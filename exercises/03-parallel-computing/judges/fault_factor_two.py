"""Judge a repaired copy: the factor of all_reduce must be 2(n-1)/n."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("over {ranks} ranks the factor is {given:.3g}, but should be {right:.3g}")}


def judge(part: Part) -> None:
    """Check that the factor is 2(n-1)/n for all_reduce."""
    factor = part.function("bus_factor")
    for ranks in (2, 3, 4, 8):
        answer = part.call(factor, "all_reduce", ranks)
        if abs(answer - 2 * (ranks - 1) / ranks) > 1e-9:
            raise part.wrong("still", given=answer, ranks=ranks, right=2 * (ranks - 1) / ranks)
    part.note("between two ranks the factor is 1")
