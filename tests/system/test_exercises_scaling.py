"""3.7 and 3.8 as a learner runs them: groups of workers, compressed gradients; each planted fault is found by its check."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.figures.plots import draw
from tests.system.exercising import Finished, by_torchrun, needs_torch, spoiled, words

pytestmark = [pytest.mark.system, needs_torch]

SMALL_SCALING = {"hidden": "32", "batch_size": "24", "steps": "5", "depth": "1"}


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return by_torchrun("3.7", 4, tmp_path_factory.mktemp("curve") / "a node's work")


def test_the_curve_with_its_local_defaults_passes_every_check_that_a_cpu_can_make(curve: Finished) -> None:
    assert curve.code == 0, curve.output
    reason = "not_measured: not measured: needs a GPU"
    assert words(curve.verdict()) == {"weak-efficiency": reason, "steady-baseline": reason}
    assert curve.verdict().verdict == "passed"
    assert (curve.metrics["schema"], curve.metrics["backend"]) == ("scaling_efficiency/1", "gloo")


def test_the_curve_holds_its_own_formulas(curve: Finished) -> None:
    rows = curve.metrics["scaling"]
    assert [(row["mode"], row["workers"], row["batch_per_worker"]) for row in rows] == [
        *(("weak", n, 128) for n in (1, 2, 4)),
        *(("strong", n, 128 // n) for n in (1, 2, 4)),
    ]
    for row in rows:
        rate = row["workers"] * row["batch_per_worker"] / row["median_ms"] * 1e3
        assert row["samples_per_s"] == pytest.approx(rate)
        assert row["speedup"] == pytest.approx(rate / rows[0]["samples_per_s"])
        assert row["efficiency_percent"] == pytest.approx(100 * row["speedup"] / row["workers"])
        if row["workers"] > 1:
            parts = row["ideal_ms"] + row["slower_computing_ms"] + row["communication_ms"]
            assert parts == pytest.approx(row["median_ms"])
            assert row["ideal_ms"] == pytest.approx(rows[0]["median_ms"] * row["batch_per_worker"] / 128)
    assert curve.metrics["strong_efficiency_percent"] == rows[-1]["efficiency_percent"]
    assert rows[0]["median_ms"] == rows[3]["median_ms"], "one worker is one worker"


def test_only_the_workers_of_a_group_speak(curve: Finished) -> None:
    assert curve.output.count("2 workers, weak:") == 2
    assert curve.output.count("4 workers, strong:") == 4


def test_what_was_measured_can_be_drawn_and_tabled(curve: Finished, tmp_path: Path) -> None:
    shown(curve, tmp_path)


def shown(run: Finished, folder: Path) -> None:
    for plot in run.exercise.plots:
        assert len(draw(plot, run.metrics, subtitle="test", folder=folder)) == 2
    for table in run.exercise.tables:
        rows = run.metrics[table.rows.removeprefix("metrics.")]
        keys = set().union(*rows)
        assert all(column.key in keys for column in table.columns)


def test_fewer_ranks_than_workers_make_a_shorter_curve_and_three_are_fine(tmp_path: Path) -> None:
    run = spoiled("3.7", tmp_path / "work", ranks=3, **SMALL_SCALING)
    assert run.code == 0, run.output
    assert run.metrics["counts"] == [1, 2, 3]
    assert set(words(run.verdict())) == {"weak-efficiency", "steady-baseline"}


def test_workers_that_train_apart_are_found(tmp_path: Path) -> None:
    fault = ("group = dist.new_group(range(n)) if n > 1 else None", "group = [dist.new_group([r]) for r in range(size)][rank]")
    run = spoiled("3.7", tmp_path / "work", fault, **SMALL_SCALING)
    assert run.code == 0, run.output
    failed = {check.id for check in run.verdict().checks if check.verdict == "failed"}
    assert failed == {"gradients-right", "one-model"}


def test_a_worker_that_trains_less_is_found(tmp_path: Path) -> None:
    fault = ("trained += len(y)", "trained += len(y) - rank")
    run = spoiled("3.7", tmp_path / "work", fault, **SMALL_SCALING)
    assert run.code == 0, run.output
    assert run.check("no-sample-missing").verdict == "failed"
