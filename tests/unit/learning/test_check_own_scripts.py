"""`check` of a learner's own script: judged again by the checks of its run, and counted for no exercise."""

from __future__ import annotations

from gpucourse.course.own_checks import read_own_checks
from tests.learning import Learning
from tests.unit.course.test_own_checks import FILE

OWN = "/home/me/train.py"


def record_own(learning: Learning, script: str = OWN, **metrics: object) -> str:
    path = learning.root / "checks.yaml"
    path.write_text(FILE)
    checks = [dict(check) for check in read_own_checks(path)]
    record = learning.record(
        metrics={"ranks": 2, **metrics}, own_script=script, checks=checks, world_size=2, launcher="torchrun"
    )
    return record.id


def test_check_script_uses_its_checks_and_counts_for_no_exercise(learning: Learning) -> None:
    record_own(learning, steps_per_s=140.0)
    result = learning.types("check", "train.py")
    assert "passed" in result.out
    assert "2 passed" in result.out
    slow_run = record_own(learning, steps_per_s=30.0)
    listing = learning.types("runs").out
    assert "failed" in next(line for line in listing.splitlines() if slow_run in line)
    output = learning.types("check", "train.py", code=5).out
    assert "It is fast: 30 steps/s; expected at least 100 steps/s [fast]" in output
    assert "Take a larger batch." in output
    document = learning.types("check", "train.py", "--run", slow_run, "--json", code=5).document
    assert (document["verdict"]["exercise"], document["verdict"]["verdict"]) == ("train.py", "failed")
    assert "It is fast" in learning.types("show", "train.py", "--run", slow_run).out
    assert not (learning.workspace / "deliverables").exists()
    assert "0 of 2 exercises done" in learning.types("list").out
    assert set(learning.read_points().values()) == {0}


def test_check_script_with_changed_numbers_fails(learning: Learning) -> None:
    run = record_own(learning, steps_per_s=30.0)
    path = learning.workspace / "runs/scripts/train.py" / run / "metrics.json"
    path.write_text(path.read_text().replace("30.0", "300.0"))
    output = " ".join(learning.types("check", "train.py", code=5).out.split())
    assert "changed: metrics.json" in output
    assert f"run it again: gpucourse run --script {OWN}" in output


def test_check_script_without_checks_is_refused(learning: Learning) -> None:
    learning.record(own_script=OWN)
    message = learning.types("check", "train.py", code=3).err
    assert "no run of train.py has succeeded with its own checks" in message
    assert f"gpucourse run --script {OWN} --checks FILE" in message


def test_check_script_distinguishes_scripts_of_one_name(learning: Learning) -> None:
    checks = [{"id": "low", "title": "It is low", "value": "metrics.loss", "below": 3, "hint": "Go on."}]
    learning.record(metrics={"loss": 2.5}, own_script="/home/me/a/train.py", checks=checks)
    second = learning.record(metrics={"loss": 2.0}, own_script="/home/me/b/train.py", checks=checks)
    message = " ".join(learning.types("check", "train.py").err.split())
    assert f"run {second.id} is a run of /home/me/b/train.py; other scripts with this name: /home/me/a/train.py." in message
    assert "Choose one with --run RUN" in message
