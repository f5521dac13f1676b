"""`next`, `list`, `show` and `grade` say in the same words how far an exercise is: ran, yours, answered."""

from __future__ import annotations

import pytest

from gpucourse.model.record import RunRecord
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs
from tests.learning import Learning, deploy


def say_next(learning: Learning) -> str:
    return " ".join(learning.types("next").out.split())


def test_next_leads_from_the_lab_to_the_bundle(learning: Learning) -> None:
    assert "1.1 Source – ran – answered The lab of module 1 is not deployed gpucourse deploy 1" in say_next(learning)
    deploy(learning)
    assert say_next(learning).endswith("and run it gpucourse run 1.1")
    learning.record(metrics={"wet": False, "springs": []})
    assert "A check did not pass: It is wet gpucourse hint 1.1" in say_next(learning)
    learning.record()
    assert "✓ ran – answered Answer why, speedup, busy, where gpucourse answer 1.1" in say_next(learning)
    learning.types("answer", "1.1", "--set", "why=Down.", "--set", "speedup=1.9", "--set", "busy=80", "--set", "where=b")
    assert "1.2 Mouth – ran" in say_next(learning)
    assert learning.types("next", "--json").document["command"] == "gpucourse run 1.2"
    learning.record("1.2")
    assert say_next(learning).endswith("gpucourse grade --bundle work.zip")


def test_next_stays_where_the_learner_is(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUCOURSE_COURSE")

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
