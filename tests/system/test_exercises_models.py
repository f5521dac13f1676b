"""3.6 and 3.9 as a learner runs them: a model in parts trains as the whole one does, and each planted fault is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpucourse.figures.plots import draw
from tests.system.exercising import Finished, by_torchrun, environment, laid_out, needs_torch, spoiled, start, wait, words

pytestmark = [pytest.mark.system, needs_torch]

SMALL_PIPELINE = {"hidden": "96", "batch_size": "256", "layers": "4", "steps": "3"}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return by_torchrun("3.6", 2, tmp_path_factory.mktemp("pipeline") / "a node's work")


def test_the_pipeline_with_its_local_defaults_passes_every_check_that_a_cpu_can_make(pipeline: Finished) -> None:
    assert pipeline.code == 0, pipeline.output
    assert words(pipeline.verdict()) == {"pipeline-pays": "not_measured: not measured: needs a GPU"}
    assert pipeline.verdict().verdict == "passed"
    assert (pipeline.metrics["schema"], pipeline.metrics["backend"]) == ("model_parallelism/1", "gloo")


def test_the_sweep_has_both_schedules_and_both_bubbles(pipeline: Finished) -> None:
    sweep = pipeline.metrics["sweep"]
    assert [(row["way"], row["micro_batches"]) for row in sweep] == [
        *(("gpipe", m) for m in (1, 2, 4, 8)),
        *(("1f1b", m) for m in (2, 4, 8)),
    ]
    one = pipeline.metrics["one_process"]["median_ms"]
    for row in pipeline.metrics["every_way"]:
        m = row["micro_batches"]
        assert row["bubble_predicted_percent"] == pytest.approx(100 / (m + 1))
        assert row["bubble_wall_percent"] == pytest.approx(100 * (1 - sum(row["busy_ms"]) / 2 / row["median_ms"]), abs=0.01)
        assert row["speedup"] == pytest.approx(one / row["median_ms"])
        assert row["samples"] == 5
    assert [row["in_flight"] for row in sweep] == [1, 2, 4, 8, 2, 2, 2]


def test_each_rank_says_what_it_holds_and_how_long_it_worked(pipeline: Finished) -> None:
    assert "rank 0 of 2 on node0 (cpu) has layers 0 to 3 of 8" in pipeline.output
    assert "rank 1 of 2 on node0 (cpu) has layers 4 to 7 of 8" in pipeline.output
    assert pipeline.output.count("rank 1: 1f1b, 8 micro-batches: busy") == 1
    losses = pipeline.metrics["losses"]
    assert losses[-1]["loss"] < losses[0]["loss"]


def test_what_the_pipeline_measured_can_be_drawn_and_tabled(pipeline: Finished, tmp_path: Path) -> None:
    shown(pipeline, tmp_path)
    assert "(p - 1) / (m + p - 1)" in (tmp_path / "bubble.svg").read_text(encoding="utf-8")


def shown(run: Finished, folder: Path) -> None:
    for plot in run.exercise.plots:
        assert len(draw(plot, run.metrics, subtitle="test", folder=folder)) == 2
    for table in run.exercise.tables:
        rows = run.metrics[table.rows.removeprefix("metrics.")]
        assert all(column.key in row for row in rows for column in table.columns)


def test_three_ranks_and_layers_that_do_not_divide(tmp_path: Path) -> None:
    run = by_torchrun(
        "3.6", 3, tmp_path / "work", **SMALL_PIPELINE | {"layers": "7", "schedule": "gpipe", "micro_batches": "2"}
    )
    assert run.code == 0, run.output
    assert [part["layers"] for part in run.metrics["stages"]] == [2, 2, 3]
    assert {"gradients-right", "loss-equal", "parameters-equal", "all-layers"}.isdisjoint(words(run.verdict()))


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (
            ("args.layers * r // size, args.layers * (r + 1) // size", "3 * (r > 0), 3 if r == 0 else args.layers"),
            "bubble-formula",
        ),
        (("lr=0.05) for model in (part, whole)", "lr=0.05 + (model is part) / 50) for model in (part, whole)"), "loss-equal"),
        (("dist.send(given.grad, rank - 1)", "dist.send(given.grad * 1.01, rank - 1)"), "gradients-right"),
    ],
    ids=["unequal shares", "another learning rate", "a wrong gradient sent back"],
)
def test_a_fault_of_the_pipeline_is_found(change: tuple[str, str], check: str, tmp_path: Path) -> None:
    run = spoiled("3.6", tmp_path / "work", change, **SMALL_PIPELINE)
    assert run.code == 0, run.output
    assert run.check(check).verdict == "failed", run.check(check)


def test_1f1b_with_too_few_micro_batches_is_refused_at_once(tmp_path: Path) -> None:
    run = spoiled("3.6", tmp_path / "work", **SMALL_PIPELINE | {"micro_batches": "1"})
    assert run.code == 1
    assert "with 1f1b at least as many micro-batches as ranks (--micro-batches 1)" in run.output
    assert "Traceback" not in run.output
    assert not run.metrics


def test_a_batch_that_cannot_be_cut_is_refused_with_a_sentence(tmp_path: Path) -> None:
    _, script = laid_out("3.6", tmp_path / "work")
    process = start([sys.executable, str(script), "--batch-size=12"], tmp_path, environment(tmp_path))
    output = wait(process)
    assert process.returncode == 2
    assert "must be a multiple of each of [1, 2, 4, 8]" in output
    assert "Traceback" not in output
