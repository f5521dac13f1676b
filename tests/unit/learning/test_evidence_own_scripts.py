"""A learner's own script counts for no exercise, whatever numbers it writes, even if an earlier version counted it."""

from __future__ import annotations

import json
import zipfile

from gpucourse.learning import watch
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.workspace.files import write_record
from tests.learning import METRICS, Learning

OWN = "/home/me/thesis/my train.py"


def book_an_earlier_run(learning: Learning) -> RunRecord:
    """Return a run of a learner's own script that an earlier version judged by the exercise's checks, and handed in as
    passed."""
    record = learning.record(own_script="fake.py", place=None)
    record.verdict = "passed"
    write_record(learning.folder(record) / "run.json", record)
    wet = CheckResult(id="wet", title="It is wet", verdict="passed", evidence="logic", observed="true", expected="true")
    verdict = ExerciseVerdict(exercise="1.1", run=record.id, mode="local", verdict="passed", checks=(wet,))
    handed_in = learning.workspace / "deliverables" / "1.1"
    for folder in (learning.folder(record), handed_in):
        write_record(folder / "verdict.json", verdict)
    (handed_in / "metrics.json").write_text(json.dumps(METRICS))
    return record


def test_candidates_of_a_script_of_the_learner_alone_are_none(learning: Learning) -> None:
    record = learning.record(own_script=OWN)
    assert record.verdict is None
    assert not (learning.folder(record) / "verdict.json").exists()
    assert not (learning.workspace / "deliverables").exists()
    assert "no run of 1.1 has succeeded yet" in learning.types("check", "1.1", code=3).err
    learning.types("check", "--all")
    assert "0 of 2 exercises done" in learning.types("list").out
    assert "no run has succeeded yet" in learning.types("answer", "1.1", "--set", "speedup=1.9", code=3).err
    assert set(learning.read_points().values()) == {0}
    assert "nothing to hand in yet" in learning.types("grade", "--bundle", str(learning.root / "w.zip"), code=2).err


def test_candidates_without_a_script_of_the_learner_keep_their_points(learning: Learning) -> None:
    good_run = learning.record()
    learning.types("answer", "1.1", "--set", "speedup=1.9")
    old_points = learning.read_points()
    own_run = learning.record(metrics={"wet": False, "speedup": 77.0}, own_script=OWN)
    learning.types("check", "1.1")
    learning.types("check", "--all")
    assert learning.read_points() == old_points
    assert old_points["completed"] == 5
    learning.types("answer", "1.1", "--set", "speedup=1.9")
    assert learning.read_points() == old_points
    message = learning.types("answer", "1.1", "--run", own_run.id, "--set", "speedup=77", code=2).err
    assert "ran my train.py, a script of your own" in message
    assert "ran my train.py" in learning.types("check", "1.1", "--run", own_run.id, code=2).err
    learning.types("grade", "--bundle", str(learning.root / "w.zip"))
    with zipfile.ZipFile(learning.root / "w.zip") as bundle:
        names = bundle.namelist()
    assert any(good_run.id in name for name in names)
    assert not any(own_run.id in name for name in names)


def test_gather_counts_no_script_of_the_learner_that_an_earlier_version_counted(learning: Learning) -> None:
    own_run = book_an_earlier_run(learning)
    assert "0 of 2 exercises done" in learning.types("list").out
    assert set(learning.read_points().values()) == {0}
    output = learning.types("check", "--all", code=5).out
    assert "No longer passing: 1.1" in output
    assert f"run {own_run.id} ran a script of your own" in " ".join(output.split())
    assert "0 of 2 exercises done" in learning.types("list").out


def test_candidates_for_compare_leave_out_a_script_of_the_learner(learning: Learning) -> None:
    good_run, own_run = learning.record(), book_an_earlier_run(learning)
    output = learning.types("runs").out
    assert "fake.py" in output
    assert "passed" not in next(line for line in output.splitlines() if own_run.id in line)
    message = learning.types("compare", good_run.id, own_run.id, code=2).err
    assert f"run {own_run.id} ran fake.py, a script of your own" in message
    assert not list((learning.workspace / "deliverables").glob("*/comparison*"))


def test_show_of_a_script_of_the_learner_whose_name_begins_with_a_dash(learning: Learning) -> None:
    record = learning.record(own_script="/home/me/-x.py")
    output = learning.types("show", "--run", record.id, "--", "-x.py").out
    assert f"gpucourse show --run {record.id} --verbose -- -x.py" in " ".join(output.split())


def test_find_current_exercise_ignores_scripts_of_the_learner(learning: Learning) -> None:
    learning.record("1.1")
    learning.record("1.2", own_script=OWN)
    assert watch.find_current_exercise(learning.open_context()).id == "1.1"
