"""`check`: four verdicts with their evidence, every exercise checked again, and an exercise that regressed loses its mark."""

from __future__ import annotations

import json
import shutil
from typing import Any

from tests.learning import METRICS, Learning


def verdict_of(learning: Learning, exercise: str = "1.1") -> Any:
    return json.loads((learning.workspace / f"deliverables/{exercise}/verdict.json").read_text())


def test_check_of_one_run_by_name_changes_no_mark(learning: Learning) -> None:
    bad_run, good_run = learning.record(metrics={**METRICS, "wet": False}), learning.record()
    document = learning.types("check", "1.1", "--run", bad_run.id, "--json", code=5).document
    assert (document["run"], document["verdict"]["verdict"]) == (bad_run.id, "failed")
    assert verdict_of(learning)["run"] == good_run.id
    assert learning.types("check", "1.1", "--json").document["run"] == good_run.id
    for words, message in (
        (["1.2", "--run", bad_run.id], f"run {bad_run.id} is a run of 1.1, not of 1.2"),
        (["1.1", "--run", "no-such"], "there is no run 'no-such'"),
        (["--all", "--run", bad_run.id], "--run needs one exercise, without --diagnosis"),
    ):
        assert message in " ".join(learning.types("check", *words, code=2).err.split())


def test_check_all_checks_every_exercise(learning: Learning) -> None:
    learning.record()
    result = learning.types("check", "--all")
    assert "1 of 2 exercises pass." in result.out
    assert "not yet" in result.out
    document = learning.types("check", "--all", "--json").document
    assert [(exercise["exercise"], exercise["before"], exercise["regressed"]) for exercise in document["exercises"]] == [
        ("1.1", "passed", False), ("1.2", None, False)
    ]  # fmt: skip


def test_check_all_after_the_course_requires_more_removes_the_mark(learning: Learning) -> None:
    learning.record()
    manifest = learning.course / "modules/01-rivers/module.yaml"
    manifest.write_text(manifest.read_text().replace("above: 0, unit: l", "above: 2, unit: l"))
    result = learning.types("check", "--all", code=5)
    assert "No longer passing: 1.1" in result.out
    assert "flows: 1.5 l" in result.out
    assert verdict_of(learning)["verdict"] == "failed"
    assert "0 of 2 exercises done" in learning.types("list").out
    manifest.write_text(manifest.read_text().replace("above: 2, unit: l", "above: 0, unit: l"))
    learning.types("check", "--all")
    assert verdict_of(learning)["verdict"] == "passed", "what holds again is marked again"


def test_check_of_a_changed_file_removes_the_mark(learning: Learning) -> None:
    record = learning.record()
    metrics = learning.folder(record) / "metrics.json"
    text = metrics.read_text()
    metrics.write_text(text.replace("1.9", "19.0"))
    result = learning.types("check", "--all", code=5)
    assert "unchanged: changed: metrics.json" in result.out
    assert "run it again: gpucourse run 1.1" in result.out
    assert "changed: metrics.json" in learning.types("check", "1.1", code=5).out
    metrics.write_text(text)
    learning.types("check", "1.1")
    assert "1 of 2 exercises pass." in learning.types("check", "--all").out


def test_check_names_a_truncated_file_a_lost_run_and_a_lost_seal(learning: Learning) -> None:
    record = learning.record()
    folder = learning.folder(record)
    (folder / "metrics.json").write_text('{"wet": tr')
    result = learning.types("check", "--all", code=5)
    assert "metrics.json is damaged" in result.out
    assert "metrics.json is damaged" in learning.types("check", "1.1", code=5).out
    shutil.rmtree(folder)
    result = learning.types("check", "--all", code=5)
    assert f"run {record.id} is gone" in result.out
    assert "run it again: gpucourse run 1.1" in result.out
    learning.types("check", "1.1", code=3)
    second_run = learning.record()
    (learning.folder(second_run) / "hashes.json").unlink()
    assert "changed: hashes.json" in learning.types("check", "--all", code=5).out


def test_check_names_a_missing_deliverable(learning: Learning) -> None:
    learning.record()
    (learning.workspace / "deliverables/1.1/logs/node0-rank0.log").unlink()
    assert "not in deliverables/: The log" in learning.types("check", "--all").out


def test_check_with_a_verdict_of_a_newer_version_is_refused(learning: Learning) -> None:
    learning.record()
    path = learning.workspace / "deliverables/1.1/verdict.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 9'))
    for words in (["check", "--all"], ["list"], ["check", "1.1"]):
        assert "has format 9" in learning.types(*words, code=3).err
    assert '"version": 9' in path.read_text()
