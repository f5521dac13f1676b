"""Judges a repaired copy: tokens are the engine's own count."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("eight tokens, of which the last is no word of its own, count as {count}")}


def judge(part: Part) -> None:
    """Eight tokens are asked for, and the engine says that it made eight."""
    import engine  # beside this file, on the path of the process that judges

    answer = engine.complete(part)
    if answer.tokens != 8:
        raise part.wrong("still", count=answer.tokens)
    part.note("eight tokens count as eight")
