"""Judge a repaired copy: the number of tokens must be the engine's own count."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("eight tokens are counted as {count}")}


def judge(part: Part) -> None:
    """Check that eight tokens, by the engine's own report, are counted as eight."""
    import engine  # beside this file, on the path of the process that judges

    answer = engine.complete(part)
    if answer.tokens != 8:
        raise part.wrong("still", count=answer.tokens)
    part.note("eight tokens are counted as eight")
