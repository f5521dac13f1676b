"""The job that compares the tasks of 2.4: a value is best only if the seeds do not explain the difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.system.exercising import environment, needs_torch, start, wait

pytestmark = needs_torch
GATHER = find_course({}).exercises / "02-slurm" / "gather.py"


def compare(folder: Path, *ranges: tuple[float, float] | None) -> dict[str, Any]:
    """Return what gather.py says of tasks with these losses, lowest and highest; None for one that diverged."""
    for task, ends in enumerate(ranges):
        low, high = ends or (None, None)
        row = {
            "task": task, "value": task + 1.0, "final_loss": (low + high) / 2 if low is not None and high is not None else None,
            "low_loss": low, "high_loss": high, "start_losses": [1.0, 2.0], "seeds": 2, "seconds": 1.0, "steps": 8,
            "samples_seen": 256, "host": "node1",
        }  # fmt: skip
        (folder / f"job-7_{task}.json").write_text(json.dumps(row))
    command = [sys.executable, str(GATHER), "--values=" + ",".join("1" for _ in ranges)]
    gathering = start(command, folder, environment(folder))
    output = wait(gathering)
    assert gathering.returncode == 0, output
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return metrics


@pytest.mark.parametrize(
    ("ranges", "verdicts", "not_told_apart"),
    [
        ([(0.0115, 0.0130), (0.0110, 0.0138), (0.02, 0.03)], ["not told apart", "not told apart", ""], 1),
        pytest.param([(0.0115, 0.0130), (0.0131, 0.0140), None], ["best", "", ""], 0, marks=pytest.mark.slow),
    ],
)
def test_gather_names_no_best_if_losses_overlap(
    tmp_path: Path, ranges: list[tuple[float, float] | None], verdicts: list[str], not_told_apart: int
) -> None:
    metrics = compare(tmp_path, *ranges)
    assert [row["best"] for row in metrics["rows"]] == verdicts
    assert metrics["not_told_apart"] == not_told_apart
    assert (metrics["best_value"], metrics["diverged"]) == (1.0, ranges.count(None))
