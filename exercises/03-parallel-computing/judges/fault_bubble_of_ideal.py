"""Judge a repaired copy: the bubble is a share of the whole step, not of the time without a bubble."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "for {ranks} ranks and {pieces} micro-batches the formula gives {given:.1%}, but of the step's {total} slots "
        "{idle} are idle: {right:.1%}"
    )
}


def judge(part: Part) -> None:
    """Count the slots of a step in which a rank is idle: p - 1 of m + p - 1, with v times as many passes if interleaved."""
    predict = part.function("predict_bubble")
    for ranks, micro_batches, chunks in ((2, 1, 1), (2, 8, 1), (4, 4, 1), (4, 8, 2)):
        idle, total = ranks - 1, chunks * micro_batches + ranks - 1
        given = part.call(predict, ranks, micro_batches, chunks)
        if abs(given - idle / total) > 1e-9:
            raise part.wrong(
                "still", ranks=ranks, pieces=micro_batches, given=given, total=total, idle=idle, right=idle / total
            )
    part.note("of m + p - 1 slots, p - 1 are idle")
