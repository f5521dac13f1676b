"""Judge a repaired copy: a step must count the samples that its workers really had."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{mode}, {workers} workers: {given:,.0f} samples per second, but its step had samples for {right:,.0f}")}
ROW = {"mode": "strong", "workers": 2, "batch_per_worker": 32, "median_ms": 100.0}
RUNS = {
    word: {"scaling": [ROW | {"mode": "weak", "batch_per_worker": 64, "samples_per_s": 1280.0}, ROW | {"samples_per_s": speed}]}
    for word, speed in (("right", 640.0), ("wrong", 1280.0))
}


def judge(part: Part) -> None:
    """Require that the samples per second are those of all workers' batches in the median step."""
    for row in part.metrics["scaling"]:
        right = row["workers"] * row["batch_per_worker"] / (row["median_ms"] / 1e3)
        if abs(row["samples_per_s"] / right - 1) > 1e-6:
            raise part.wrong("still", mode=row["mode"], workers=row["workers"], given=row["samples_per_s"], right=right)
    part.note("each row counts the batches that its workers had")
