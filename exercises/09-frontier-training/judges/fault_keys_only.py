"""Judge a repaired copy: gathering keys and values sends as many bytes as its formula says."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the bytes of gathering are {off:,} off the formula: what is sent besides the keys?")}
RUNS = {"right": {"bytes_off": 0}, "wrong": {"bytes_off": 196608}}


def judge(part: Part) -> None:
    """Require the bytes of the formula."""
    if off := part.metrics["bytes_off"]:
        raise part.wrong("still", off=off)
    part.note("every tensor of a message is counted")
