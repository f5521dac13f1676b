"""Judge a repaired copy: the hybrid plan has all of its iterations, and brings singular values to 1."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("after the hybrid plan, a singular value may still be {off:.3f} away from 1")}
RUNS = {"right": {"hybrid_off": 0.0005}, "wrong": {"hybrid_off": 0.038}}


def judge(part: Part) -> None:
    """Require that all singular values from 0.005 on end within 0.001 of 1."""
    if (off := part.metrics["hybrid_off"]) > 0.001:
        raise part.wrong("still", off=off)
    part.note("all singular values from 0.005 to 1 end within 0.001 of 1")
