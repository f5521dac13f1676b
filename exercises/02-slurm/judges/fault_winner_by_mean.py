"""Judge a repaired copy: values whose losses overlap cannot be told apart."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "according to the run, {given} values cannot be told apart from the best, but the losses of {right} overlap with those "
        "of the best"
    )
}
ROWS = [
    {"value": 0.001, "final_loss": 0.30, "low_loss": 0.28, "high_loss": 0.33},
    {"value": 0.002, "final_loss": 0.10, "low_loss": 0.08, "high_loss": 0.13},
    {"value": 0.003, "final_loss": 0.09, "low_loss": 0.07, "high_loss": 0.12},
    {"value": 0.004, "final_loss": None, "low_loss": None, "high_loss": None},
]
RUNS = {"right": {"rows": ROWS, "not_told_apart": 1}, "wrong": {"rows": ROWS, "not_told_apart": 0}}


def judge(part: Part) -> None:
    """Count the values whose range of losses over the seeds overlaps with that of the smallest mean loss."""
    rows = [row for row in part.metrics["rows"] if row["final_loss"] is not None]
    best = min(rows, key=lambda row: row["final_loss"])
    right = sum(row is not best and row["low_loss"] <= best["high_loss"] for row in rows)
    if part.metrics["not_told_apart"] != right:
        raise part.wrong("still", given=part.metrics["not_told_apart"], right=right)
    part.note(f"{right} values have losses that overlap with those of the best")
