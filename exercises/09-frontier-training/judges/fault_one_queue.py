"""Judge a repaired copy of the clock: a gather does not wait for a reduce."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the gather of layer 0 begins at {begin}, after a reduce, but could begin at 2")}


def judge(part: Part) -> None:
    """Judge the end of a backward pass: a long reduce, and a gather that is issued after it."""
    issues = [("gather", 1), ("backward", 1), ("free", 1), ("reduce", 1), ("gather", 0), ("backward", 0), ("free", 0)]
    seconds = {kind: [1, 1] for kind in ("gather", "forward", "backward")} | {"reduce": [50, 50]}
    spans = part.call(part.function("simulate_step"), issues, seconds, 1)
    if spans[4][0] != 2:
        raise part.wrong("still", begin=spans[4][0])
    part.note("gathers and reduces have separate queues")
