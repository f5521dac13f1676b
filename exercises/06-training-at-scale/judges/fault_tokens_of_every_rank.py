"""Judge a repaired copy: it must count the tokens of a step only once."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("{layout}: {given:,.0f} tokens/s, but a step of {median_ms:.1f} ms trains {tokens:,}, which is {right:,.0f}")
}
ROW = {"layout": "2x2x2", "median_ms": 100.0}
RUNS = {
    "right": {"batch_size": 16, "length": 32, "layouts": [ROW | {"tokens_per_s": 5120.0}]},
    "wrong": {"batch_size": 16, "length": 32, "layouts": [ROW | {"tokens_per_s": 20480.0}]},
}


def judge(part: Part) -> None:
    """Check that every layout's tokens per second are the tokens of the whole batch, divided by the time of a step."""
    tokens = part.metrics["batch_size"] * part.metrics["length"]
    for row in part.metrics["layouts"]:
        reference, answer = tokens / row["median_ms"] * 1e3, row["tokens_per_s"]
        if abs(answer / reference - 1) > 1e-4:
            raise part.wrong(
                "still", layout=row["layout"], given=answer, median_ms=row["median_ms"], tokens=tokens, right=reference
            )
    part.note("a step trains the tokens of the batch, whatever the layout")
