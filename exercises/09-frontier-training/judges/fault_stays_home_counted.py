"""Judge a repaired copy: only the bytes that a rank sends to other ranks count."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a rank is said to send {off:,} bytes more than go to other ranks: rows that stay there are counted")}
RUNS = {"right": {"bytes_off": 0}, "wrong": {"bytes_off": 50_688}}


def judge(part: Part) -> None:
    """Require the bytes of the formula."""
    if part.metrics["bytes_off"]:
        raise part.wrong("still", off=part.metrics["bytes_off"])
    part.note("a rank sends its tokens to all others, and nothing to itself")
