"""Judge a repaired copy: only tokens of the text count, not guesses that were rejected."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{draft}: {steps} steps wrote {tokens} tokens, but the table has {result:.2f} tokens a step")}
_TEXT = {"draft": "small model", "tokens": 152, "steps": 38, "guesses": 152, "accepted": 113}
RUNS = {"right": {"drafts": [_TEXT | {"tokens_per_step": 4.0}]}, "wrong": {"drafts": [_TEXT | {"tokens_per_step": 5.0}]}}


def judge(part: Part) -> None:
    """Require the figure that follows from the text."""
    for row in part.metrics["drafts"]:
        if abs(row["tokens_per_step"] - row["tokens"] / row["steps"]) > 0.01:
            values = {key: row[key] for key in ("draft", "steps", "tokens")}
            raise part.wrong("still", result=row["tokens_per_step"], **values)
    part.note("tokens per step are the tokens of the text, divided by the steps")
