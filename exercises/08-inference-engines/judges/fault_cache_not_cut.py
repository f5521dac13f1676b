"""Judge a repaired copy: guesses must not change the text at temperature 0."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("at temperature 0, {off} tokens differ from what the large model writes alone")}
RUNS = {"right": {"greedy_off": 0}, "wrong": {"greedy_off": 211}}


def judge(part: Part) -> None:
    """Require the same text with every draft."""
    if part.metrics["greedy_off"]:
        raise part.wrong("still", off=part.metrics["greedy_off"])
    part.note("the text is the large model's own with every draft")
