"""`next`, `list`, `show` and `grade` say in the same words how far an exercise is: ran, yours, answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.cli.session import Session
from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.learning.next_ import find_next_step, measure_time_spent
from gpucourse.model.diagnosis import Diagnosis
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import KeptParts
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import write_record
from tests.learning import Learning, deploy


def say_next(learning: Learning) -> str:
    return " ".join(learning.types("next").out.split())


def test_next_names_a_hint_after_a_failed_check_then_another_run(learning: Learning) -> None:
    assert "1.1 Source – ran – answered The lab of module 1 is not deployed gpucourse deploy 1" in say_next(learning)
    deploy(learning)
    learning.record(metrics={"wet": False, "springs": []})
    assert "A check did not pass: It is wet gpucourse hint 1.1" in say_next(learning)
    assert "Next: gpucourse run 1.1" in learning.types("hint", "1.1").out
    assert "follow the hint, then judge it again gpucourse run 1.1" in say_next(learning)
    learning.record()
    learning.record(state="failed")
    assert say_next(learning).split(" 0 of 2")[0].endswith("gpucourse answer 1.1"), "the good run still counts"
    (learning.workspace / "deliverables/1.1/answers.yaml").write_text("exercise: [")
    assert "answers.yaml: is not YAML" in say_next(learning)
    assert "answers.yaml: is not YAML" in " ".join(learning.types("list", code=2).out.split())


def test_next_stays_where_the_learner_is(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    context = replace(learning.context, folders=find_course({}), environ={})
    monkeypatch.setattr(Session, "_open", lambda _session, **_options: context)  # the course is read once
    monkeypatch.setattr(Context, "close", lambda _context: None)

    def find_next() -> tuple[str, str]:
        document = learning.types("next", "--json").document
        return document["exercise"], document["command"]

    assert find_next() == ("0.1", "gpucourse deploy 0")
    assert "Next: gpucourse deploy 0" in learning.types("init", str(learning.workspace)).err
    lab = deploy(learning)
    lab.module, lab.stack, lab.created = "3", "03-local", "2026-11-01T10:00:00+00:00"
    deployments.save(learning.context.paths, lab)
    assert find_next() == ("3.1", "gpucourse run 3.1")
    run_id = runs.new_run(learning.context.paths, "3.2")
    lab_and_state = {"stack": "03-local", "mode": "local", "launcher": "torchrun", "state": "failed"}
    record = RunRecord(id=run_id, exercise="3.2", module="3", created=now_utc("milliseconds"), **lab_and_state)  # type: ignore[arg-type]
    runs.save(learning.context.paths, record)
    assert find_next() == ("3.2", f"gpucourse logs {run_id}")
    record.state = "cancelled"
    runs.save(learning.context.paths, record)
    assert find_next() == ("3.2", "gpucourse run 3.2")
    record.state = "running"
    runs.save(learning.context.paths, record)
    assert find_next() == ("3.2", f"gpucourse logs {run_id} -f")
    assert f"Run {run_id} is still running: follow it" in say_next(learning)
    record.state = "collecting"
    runs.save(learning.context.paths, record)
    assert f"Run {run_id} has ended: collect its outputs gpucourse logs {run_id} -f" in say_next(learning)


def test_next_after_a_run_that_needs_another_exercise_names_it_until_it_has_run(learning: Learning) -> None:
    deploy(learning)
    cause = Diagnosis(symptom="rank-exited", title="Rank 0 ended", why="", next="gpucourse run 1.2")
    record = learning.record("1.1", state="failed")
    record.diagnoses = [cause]
    runs.save(learning.context.paths, record)
    assert "What to do: gpucourse run 1.2 gpucourse run 1.2" in say_next(learning)
    learning.record("1.2")
    step = find_next_step(learning.context, "1.1")
    assert (step.command, "gpucourse run 1.2" in step.what) == ("gpucourse run 1.1", False)


def test_measure_time_spent_counts_what_precedes_each_run_without_pauses(
    learning: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "read_start", lambda _: "2026-11-01T10:10:00+00:00")  # a folder's name has no milliseconds
    paths = learning.context.paths
    lab = deploy(learning)
    lab.created = "2026-11-01T10:00:00+00:00"
    deployments.save(paths, lab)
    for start, end in (("10:10", "10:15"), ("11:00", "11:02")):  # 10 minutes of reading, a run, a long pause, another run
        learning.record(created=f"2026-11-01T{start}:00.500+00:00", ended=f"2026-11-01T{end}:00.500+00:00")
    write_record(paths.yours("1.1"), KeptParts(tried="yesterday"))
    assert measure_time_spent(paths, "1.1") / 60 == pytest.approx(10 + 5 + 2, abs=0.01)
    assert measure_time_spent(paths, "1.2") == 0
    assert "1.1: 17 min so far, of about 20 min" in say_next(learning)
