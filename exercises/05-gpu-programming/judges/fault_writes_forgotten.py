"""Judge a repaired copy of operation_bytes.py: an operation moves what it reads and what it writes."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("an operation that reads 100 bytes and writes 40 counts as {count} bytes, but it moves 140"),
}


def judge(part: Part) -> None:
    """Judge a trace of one operation."""
    trace = part.call(part.function("Trace"), [(["x"], ["y"])], {"x": 100, "y": 40}, ["y"])
    count = part.call(lambda: trace.bytes)
    if count != 140:
        raise part.wrong("still", count=count)
    part.note("100 bytes read and 40 written are 140")
