"""Judge a repaired copy: each rank must count the bytes of the messages that it sends."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a rank is said to send {off:,} bytes more than its messages contain: each message is counted twice")}
RUNS = {"right": {"bytes_off": 0}, "wrong": {"bytes_off": 336_000}}


def judge(part: Part) -> None:
    """Require the bytes that were planned."""
    if part.metrics["bytes_off"]:
        raise part.wrong("still", off=part.metrics["bytes_off"])
    part.note("every rank sends the bytes of its messages")
