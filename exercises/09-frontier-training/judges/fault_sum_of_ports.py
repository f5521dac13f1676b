"""Judge a repaired copy: the clock of a ring must agree with 2(n-1) messages of a chunk."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the clock of a ring differs from 2(n-1) messages of a chunk by {off:.6g} latencies: ports work in parallel")
}
RUNS = {"right": {"ring_off": 0.0}, "wrong": {"ring_off": 734.3}}


def judge(part: Part) -> None:
    """Require the exact time."""
    if part.metrics["ring_off"]:
        raise part.wrong("still", off=part.metrics["ring_off"])
    part.note("a ring takes 2(n-1) messages of a chunk")
