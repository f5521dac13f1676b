from __future__ import annotations

from pathlib import Path

from gpucourse.model.sweep import Point, Sweep
from gpucourse.runs.parameter_sweep import SweepResult
from gpucourse.runs.run_module import ExerciseRun
from gpucourse.ui.views import many
from tests.unit.ui.examples import text


def test_sweep_counts_the_values_that_passed() -> None:
    points = [
        Point(value=4, run="a", state="succeeded", verdict="passed", seconds=1.0),
        Point(value=8, run="b", state="succeeded", verdict="failed"),
        Point(value=16, state="failed", error="node0 does not answer"),
    ]
    sweep = Sweep(id="s", exercise="3.1", parameter="size", created="", title="Every value", points=points)
    outcome = SweepResult(sweep=sweep, folder=Path("/w/runs/3.1/s"), files=())
    output = text(many.sweep(outcome))
    for words in ("✗ 1 of 3 values of size passed", "/w/runs/3.1/s", "gpucourse compare a b"):
        assert words in output, words
    assert "node0 does not answer" not in output
    assert "node0 does not answer" in text(many.sweep(outcome, whole=True))


def test_module_runs_suggests_two_runs_of_one_exercise_to_compare() -> None:
    steps = [
        ExerciseRun(exercise=exercise, title="t", lab=lab, gpu="", mode="local", state="succeeded", run=f"{exercise}-{lab}")
        for lab in ("one", "two") for exercise in ("3.1", "3.2")
    ]  # fmt: skip
    failed_run = ExerciseRun(
        exercise="3.3", title="t", lab="one", gpu="", mode="aws", state="not run", error="torch is missing"
    )
    output = text(many.module_runs([*steps, failed_run]))
    assert "gpucourse compare 3.1-one 3.1-two" in output
    assert "3.3 on one  torch is missing" in output
    assert many.module_runs([failed_run]).mode == ""
