"""Judge a repaired copy: the samples of all ranks must count."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{row}: {given:,.0f} samples per second, but all ranks together did {right:,.0f}")}
ROW = {"case": "2 workers, weak", "ranks": 2, "batch_per_rank": 64, "steps": 10, "train_s": 1.0}
RUNS = {
    "right": {"comparison": [ROW | {"samples_per_s": 1280.0}]},
    "wrong": {"comparison": [ROW | {"samples_per_s": 640.0}]},
}


def judge(part: Part) -> None:
    """Check that samples per second are those of all ranks together."""
    for row in part.metrics["comparison"]:
        reference = row["ranks"] * row["batch_per_rank"] * row["steps"] / row["train_s"]
        if abs(row["samples_per_s"] / reference - 1) > 1e-6:
            raise part.wrong("still", row=row["case"], given=row["samples_per_s"], right=reference)
    part.note("every row counts what all ranks did together")
