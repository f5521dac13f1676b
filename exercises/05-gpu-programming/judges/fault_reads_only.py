"""Judge a repaired copy: its formula must agree with the bytes that the emulator counts."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the bytes by the formula still differ by {off:,} from those that the emulator counted")}
RUNS = {"right": {"bytes_off": 0}, "wrong": {"bytes_off": 16384}}


def judge(part: Part) -> None:
    """Check that both reads and writes count, for every kernel of the course."""
    if off := part.metrics["bytes_off"]:
        raise part.wrong("still", off=off)
    part.note("the count and the formula agree, to the byte")
