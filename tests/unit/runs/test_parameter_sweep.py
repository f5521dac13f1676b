"""`run --sweep`: one record over several runs. The runs themselves are recorded ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpucourse.context import Context
from gpucourse.errors import Interrupted
from gpucourse.model.record import RunRecord
from gpucourse.runs import parameter_sweep
from gpucourse.runs.run import RunResult
from gpucourse.runs.slurm_sweep import ArrayOfRuns
from gpucourse.workspace import runs
from gpucourse.workspace.lock import hold_lock
from tests.learning import Learning


def test_sweep_of_an_own_script_hands_nothing_in(running: Learning) -> None:
    (running.root / "mine.py").write_text("print('mine')\n")
    result = running.types("run", "--script", str(running.root / "mine.py"), "--sweep", "depth=4,8", "--verbose")
    assert "mine.py by depth" in result.out
    assert "deliverable" not in result.out
    table = next((running.workspace / "runs/scripts/mine.py").glob("*/sweep.md"))
    assert str(table) in result.out
    assert table.read_text().startswith("# mine.py, by depth")
    assert [point["verdict"] for point in record_of(running, "scripts/mine.py")["points"]] == [None, None]
    assert not (running.workspace / "deliverables").exists()


def record_of(learning: Learning, place: str = "1.1") -> Any:
    (path,) = (learning.workspace / "runs" / place).glob("*/sweep.json")
    return json.loads(path.read_text())


def test_sweep_keeps_every_value_in_one_record_table_and_plot(running: Learning) -> None:
    result = running.types("run", "1.1", "--sweep", "depth=4,8,32")
    assert result.err.splitlines()[-3:] == [
        f"✓ {number} of 3, depth={depth}: succeeded" for number, depth in ((1, 4), (2, 8), (3, 32))
    ]
    for words in (
        "1.1 by depth",
        "✓ 3 of 3 values of depth passed",
        "Springs",
        "32.0",
        "Side by side: gpucourse compare",
        "Next: gpucourse ",
    ):
        assert words in result.out, words
    assert "sweep-depth.png" not in result.out, "--verbose lists the files"
    record = record_of(running)
    assert [(point["value"], point["state"], point["verdict"]) for point in record["points"]] == [
        (4, "succeeded", "passed"), (8, "succeeded", "passed"), (32, "succeeded", "passed")
    ]  # fmt: skip
    assert (record["state"], record["mode"], record["columns"]) == ("done", "local", ["depth", "litres"])
    assert record["rows"][-1] == ["32", "32.0"]
    handed_in = running.workspace / "deliverables/1.1"
    assert {path.name for path in handed_in.glob("sweep-depth.*")} == {
        f"sweep-depth.{end}" for end in ("json", "md", "png", "svg")
    }
    assert "| 32 | 32.0 |" in (handed_in / "sweep-depth.md").read_text()
    assert len(running.types("runs", "--json").document["runs"]) == 3


def test_sweep_goes_on_after_a_value_that_fails(running: Learning) -> None:
    result = running.types("run", "1.1", "--sweep", "depth=4,13,15,8", code=4)
    assert "2 of 4 values of depth failed: 13, 15" in result.err
    record = record_of(running)
    assert [point["state"] for point in record["points"]] == ["succeeded", "failed", "failed", "succeeded"]
    assert record["points"][2]["error"] == "node0 does not answer"
    assert ["13", "failed"] in record["rows"]


def test_sweep_names_a_check_that_does_not_pass(running: Learning) -> None:
    result = running.types("run", "1.1", "--sweep", "depth=14,4", code=5)
    assert "checks did not pass for depth=14" in result.err
    run = record_of(running)["points"][0]["run"]
    assert result.err.rstrip().endswith(f"gpucourse check 1.1 --run {run}")
    assert "expected true [wet]" in running.types("check", "1.1", "--run", run, code=5).out
    running.types("check", "1.1")


def test_sweep_that_is_interrupted_keeps_what_was_done(running: Learning) -> None:
    result = running.types("run", "1.1", "--sweep", "depth=4,16,8", code=130)
    assert "the sweep stopped after 1 of 3 values" in result.err
    record = record_of(running)
    assert (record["state"], len(record["points"]), record["values"]) == ("stopped", 1, [4, 16, 8])


def test_sweep_whose_job_array_outlives_its_command_is_completed_later(
    running: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[RunRecord] = []

    class Array(ArrayOfRuns):
        """Submits two runs, and follows the first to its end; then the user presses Ctrl-C."""

        def submit(self, _context: Context) -> bool:
            if not records:
                states = ("succeeded", "running")
                records.extend(running.record(state=state, collected=state == "succeeded") for state in states)
                self._records = records
                self.keep_runs(self.run_ids)
            return True

        def follow(self, _context: Context, number: int) -> RunResult:
            if number == 2:
                raise Interrupted("detached")
            return RunResult(record=records[0])

    monkeypatch.setattr(parameter_sweep, "ArrayOfRuns", Array)
    result = running.types("run", "1.1", "--sweep", "depth=4,8", code=130)
    assert "the sweep stopped after 1 of 2 values; its 2 jobs continue" in result.err
    assert "gpucourse runs 1.1 shows their states, and completes the sweep" in result.err
    stopped = record_of(running)
    assert (stopped["state"], [point["state"] for point in stopped["points"]]) == ("running", ["succeeded", "running"])
    parameter_sweep.complete_sweeps(running.open_context())
    assert record_of(running) == stopped, "a run has not ended"

    records[1].state, records[1].collected = "succeeded", True
    runs.save(running.open_context().paths, records[1])
    with hold_lock(runs.lock_of(running.open_context().paths, records[1].id), "the command of the sweep"):
        running.types("runs")
    assert record_of(running) == stopped, "its command still runs"
    assert f"the sweep {stopped['id']} over depth is complete" in running.types("runs", "1.1").err
    completed = record_of(running)
    assert (completed["state"], [point["state"] for point in completed["points"]]) == ("done", ["succeeded", "succeeded"])
    assert (running.workspace / "deliverables/1.1/sweep-depth.md").is_file()
    assert "is complete" not in running.types("runs", "1.1").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sweep", "deepth=1,2"], "there is no parameter 'deepth'. Did you mean depth?"),
        (["--sweep", "depth=1,5000"], "5000 is above 1000"),
        (["--sweep", "depth=1,2", "--sweep", "depth=3,4"], "--sweep accepts one parameter at a time, but was typed 2 times"),
        (["--sweep", "depth=1"], "at least two values are needed"),
        (["--sweep", "depth=1,2", "--set", "depth=3"], "depth is both swept and set"),
        (["--sweep", "depth=" + ",".join(map(str, range(1, 40)))], "39 values are more than 32"),
        (["--sweep", "depth=1,2", "--all"], "cannot be combined"),
    ],
)
def test_sweep_with_wrong_words_names_them(running: Learning, words: list[str], message: str) -> None:
    assert message in running.types("run", "1.1", *words, code=2).err
    assert not (running.workspace / "runs").exists()


def test_sweep_without_a_lab_is_refused(learning: Learning) -> None:
    assert "the lab of module 1 is not deployed" in learning.types("run", "1.1", "--sweep", "depth=1,2", code=3).err
    assert "the lab of module 1 is not deployed" in learning.types("run", "1", "--all", code=3).err
