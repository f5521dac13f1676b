"""Judge a repaired copy: the peak of the data sheet is the one for dense matrices."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the published TFLOP/s over the peak are {off:.1f} points away from the published MFU")}
RUNS = {"right": {"published_off_points": 0.05}, "wrong": {"published_off_points": 21.9}}


def judge(part: Part) -> None:
    """Require that the published figures agree with each other."""
    if (off := part.metrics["published_off_points"]) > 0.5:
        raise part.wrong("still", off=off)
    part.note("TFLOP/s over the peak is the published MFU")
