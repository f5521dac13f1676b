"""6.4 as a learner runs it: as delivered only what the part is about fails; solved, in the background, nothing does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.system import exercising
from tests.system.exercising import (
    FOLDERS,
    Finished,
    check_plots_and_tables,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    run_ranks,
)

pytestmark = [pytest.mark.system, needs_torch, pytest.mark.slow]

SMALL = {"ranks_per_node": "1", "layers": "1", "width": "64", "steps": "8", "save_at": "4"}
ABOUT_THE_PART = {"complete", "same-world", "other-worlds", "step-kept", "bytes-by-formula"}


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_ranks("6.4", 4, tmp_path_factory.mktemp("delivered") / "a node's work", **SMALL)


def test_as_delivered_the_run_is_whole_and_the_weights_alone_are_saved(first_run: Finished, tmp_path: Path) -> None:
    assert first_run.code == 0, first_run.output
    assert list_failed_checks(first_run) == ABOUT_THE_PART
    assert first_run.metrics["missing"] == ["optimizer", "step", "generator"]
    assert [row["ranks"] for row in first_run.metrics["worlds"]] == [4, 2, 1]
    assert first_run.metrics["steps_found"] == [0, 0, 0]
    assert [row["taken"] for row in first_run.metrics["folders"]] == ["yes", "no", "no"]
    check_plots_and_tables(first_run, tmp_path, with_gaps=True)


def test_nothing_is_left_of_the_checkpoints(first_run: Finished, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert first_run.code == 0
    assert list(tmp_path_factory.getbasetemp().glob("delivered*/*/checkpoints-*")) == []


def test_solved_and_saved_in_the_background_every_loss_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lay_out_solved(exercise_id: str, folder: Path) -> object:
        laid_out = lay_out(exercise_id, folder)
        solutions = FOLDERS.exercises / "06-training-at-scale" / "solutions"
        shutil.copyfile(solutions / "my_checkpoint.py", folder / "my_checkpoint.py")
        return laid_out

    lay_out = exercising.lay_out
    monkeypatch.setattr(exercising, "lay_out", lay_out_solved)
    run = run_ranks("6.4", 3, tmp_path / "work", **SMALL | {"asynchronous": "true", "folder": str(tmp_path / "shared")})
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}
    assert [row["ranks"] for row in run.metrics["worlds"]] == [3, 1]
    assert run.metrics["saved"]["blocked_s"] <= run.metrics["saved"]["seconds"]
    assert list((tmp_path / "shared").iterdir()) == []


def test_one_rank_has_nothing_to_shard(tmp_path: Path) -> None:
    run = run_ranks("6.4", 1, tmp_path / "work", **SMALL)
    assert run.code == 1
    assert (
        "one rank has nothing to shard: take two nodes (gpucourse deploy 6 --nodes 2), or --set ranks_per_node=2" in run.output
    )
    assert "Traceback" not in run.output
