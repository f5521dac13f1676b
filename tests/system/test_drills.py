"""Drills as a learner does them: one of each kind on two simulated nodes, diagnosed from the files of the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpucourse.model.drill import HOWS
from tests.system.cli import Learner
from tests.system.exercising import needs_torch

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]  # unit/runs/test_drill.py judges, without nodes

SMALL = ["--set", "steps=10", "--set", "samples=1024", "--set", "hidden=64", "--set", "batch_size=64", "--set", "epochs=2"]
# Steps longer than the slices in which a slow rank is stopped. How many shorter steps are hit would depend on chance.
LONGER = ["--set", "steps=5", "--set", "samples=512", "--set", "hidden=512", "--set", "batch_size=128", "--set", "epochs=1"]


def break_exercise(lab: Learner, exercise: str, kind: str, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Break the exercise. Return its record and the injected fault. Nothing of the fault may be left, and nothing may reveal
    it.
    """
    result = lab.types("break", exercise, "--how", kind, *options)
    record = lab.newest_run()
    fault = json.loads((lab.workspace / ".gpucourse/drills" / f"{record['id']}.json").read_text())
    assert (record["state"], record["drill"], record["diagnoses"]) == ("broken", True, [])
    assert fault["how"] == kind
    lab.check_nothing_runs()
    message = "".join(
        path.read_text(errors="replace") for path in lab.run_folder().rglob("*") if path.suffix in {".log", ".json"}
    )
    assert kind not in message
    assert "after_s" not in message  # of the order that the node got
    assert f"gpucourse check {exercise} --diagnosis" in result.out
    assert all(f"  {word}" in result.out for word in HOWS), "the words to choose from, all of them"
    return record, fault


def type_diagnosis(lab: Learner, exercise: str, kind: str, rank: int | None = None, *, code: int = 0) -> dict[str, Any]:
    """Type a diagnosis and return the document of the answer."""
    words = ["check", exercise, "--diagnosis", kind, *(["--rank", str(rank)] if rank is not None else []), "--json"]
    return dict(lab.types(*words, code=code).document)


def test_killed_rank_is_found_by_its_number(lab: Learner) -> None:
    record, fault = break_exercise(lab, "3.2", "kill-rank", *SMALL)
    rank_exit = next(item for item in record["rank_exits"] if item["code"] == 137)
    assert rank_exit["rank"] == fault["rank"]
    assert type_diagnosis(lab, "3.2", "kill-rank", 1 - rank_exit["rank"], code=5)["verdict"]["verdict"] == "failed"
    assert "is still open" in lab.types("check", "3.2", code=3).err
    diagnosis = type_diagnosis(lab, "3.2", "kill-rank", rank_exit["rank"])
    assert diagnosis["verdict"]["verdict"] == "passed"
    assert [(item["symptom"], item["ranks"]) for item in diagnosis["run"]["diagnoses"]] == [
        ("rank-killed", [rank_exit["rank"]])
    ]


def test_blocked_port_is_found(lab: Learner) -> None:
    record, _ = break_exercise(lab, "3.1", "block-port", "--set", "elements=1000")
    assert record["rank_exits"] == []
    assert "EADDRINUSE" in (lab.run_folder() / "logs/node0-launcher.log").read_text()
    diagnosis = type_diagnosis(lab, "3.1", "block-port")
    assert diagnosis["run"]["diagnoses"][0]["symptom"] == "port-busy"
    assert "no run of 3.1 has succeeded" in lab.types("check", "3.1", code=3).err


def test_slow_rank_is_found_and_the_log_has_times(lab: Learner) -> None:
    record, fault = break_exercise(lab, "3.2", "slow-rank", *LONGER)
    assert all(item["code"] == 0 for item in record["rank_exits"])
    metrics = json.loads((lab.run_folder() / "metrics.json").read_text())
    assert [item["rank"] for item in metrics["own_steps"]] == [0, 1]  # their speed depends on the load of the computer
    lines = lab.types("logs", "--times").out.splitlines()
    moments = [float(line.split(" s ")[0]) for line in lines]
    assert moments == sorted(moments)
    assert any("joined 2 ranks" in line for line in lines)
    assert type_diagnosis(lab, "3.2", "slow-rank", fault["rank"])["run"]["diagnoses"][0]["symptom"] == "slow-rank"
    assert lab.types("check", "3.2", code=3)  # a drill is no evidence
