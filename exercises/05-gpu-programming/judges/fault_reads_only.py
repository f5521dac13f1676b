"""Judges a repaired copy: the bytes by formula equal those that were counted."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the bytes by formula are still {off:,} off those that the emulator counted")}
RUNS = {"right": {"bytes_off": 0}, "wrong": {"bytes_off": 16384}}


def judge(part: Part) -> None:
    """Check that reads and writes count, for every kernel of the course."""
    if off := part.metrics["bytes_off"]:
        raise part.wrong("still", off=off)
    part.note("the count and the formula agree, to the byte")
