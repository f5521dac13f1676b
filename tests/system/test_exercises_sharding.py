"""6.2 as a learner runs it: as delivered, with the solutions, and where something is whole that should be divided."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.ports import take_port
from tests.system.exercising import (
    FOLDERS,
    Finished,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    read_finished,
    start,
    wait,
)

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]

SMALL = {"ranks_per_node": "1", "layers": "1", "steps": "4", "virtual_ranks": "0"}
PARTS = ("my_zero.py", "my_sharded.py")


def run_sharding(
    folder: Path, *changes: tuple[str, str, str], ranks: int = 2, solved: bool = False, **settings: str
) -> Finished:
    """Ranks of the exercise's files, in which words were replaced (file, old, new)."""
    exercise, script = lay_out("6.2", folder)
    for part in PARTS if solved else ():
        shutil.copyfile(FOLDERS.exercises / "06-training-at-scale" / "solutions" / part, folder / part)
    for name, old, new in changes:
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    meeting = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(take_port())}
    command = [sys.executable, script.name, *flags(exercise, **(SMALL | settings))]
    processes = [
        start(command, folder, {**environment(folder), **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(ranks)
    ]
    outputs = [wait(process) for process in processes]
    return read_finished(exercise, max(abs(process.returncode) for process in processes), "\n".join(outputs), folder, ranks)


def test_as_delivered_the_run_is_whole_and_the_parts_are_open(tmp_path: Path) -> None:
    run = run_sharding(tmp_path / "work", ranks=4, virtual_ranks="64", layers="2")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"formulas-run", "sharded-runs"}, "these two say nothing while their parts are open"
    assert (run.metrics["parameters"], run.metrics["sent_mb_of_3"]) == (110_400, pytest.approx(0.9936))
    assert run.metrics["fullest_moments_bytes"] == 229_376
    assert {row["ranks"] for row in run.metrics["virtual"]} == {4, 64}, run.metrics["not_predicted"]
    check_plots_and_tables(run, tmp_path)


def test_the_solutions_pass_on_ranks_that_do_not_divide_the_sizes(tmp_path: Path) -> None:
    run = run_sharding(tmp_path / "work", ranks=3, solved=True)
    assert run.code == 0, run.output
    unanswered = list_unanswered(run)
    assert set(unanswered) <= {"wire"}, unanswered
    assert run.metrics["yours"]["kept_for_each"] == pytest.approx(2, abs=0.01)
    assert run.metrics["stages"][3]["more_on_fullest_bytes"] > 0, "padding"


def test_weights_that_stay_whole_at_stage_3_are_seen(tmp_path: Path) -> None:
    change = ("zero_stages.py", "free_after_forward=stage == 3)", "free_after_forward=False)")
    run = run_sharding(tmp_path / "work", change, solved=True)
    assert run.code == 0, run.output
    failed = list_failed_checks(run)
    assert {"torch-memory", "torch-traffic", "stage-3-smallest", "memory-formula", "traffic-formula"} <= failed


def test_ranks_that_cannot_share_are_refused_with_the_rule(tmp_path: Path) -> None:
    _, script = lay_out("6.2", tmp_path / "work")
    said = {}
    for words in ("", "--ranks-per-node=5", "--stages=0,4", "--width=96 --ranks-per-node=2"):
        process = start([sys.executable, str(script), *words.split()], tmp_path, environment(tmp_path))
        said[words] = wait(process)
        assert process.returncode == 2
    assert "deploy 6 --nodes 2" in said[""]
    assert "--batch-size (48) must be a multiple of the number of ranks, 5" in said["--ranks-per-node=5"]
    assert "--stages must be different numbers from 0 to 3" in said["--stages=0,4"]
    assert "--width (96) must be a multiple of 64" in said["--width=96 --ranks-per-node=2"]
