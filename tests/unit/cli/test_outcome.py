"""The result of a run: on the screen, as a picture, and as an exit code: 0, 4 if the run failed, 5 if a check or a part
failed."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.cli.outcome import find_exit_code
from gpucourse.errors import CheckFailed
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict, PartResult
from gpucourse.runs.follow import FollowedRun, read_run_verdict
from gpucourse.runs.results import verdict_on
from gpucourse.runs.run import RunResult
from gpucourse.workspace.seals import read_seal
from tests.learning import METRICS, Learning, deploy
from tests.unit.ui.examples import RESULTS, record

PASSED, FAILED, ERROR, NOT_MEASURED = RESULTS


@pytest.mark.parametrize(
    ("values", "results", "part", "code"),
    [
        ({}, (PASSED, NOT_MEASURED), None, 0),
        ({"state": "failed"}, (PASSED,), None, 4),
        ({"state": "cancelled"}, (FAILED,), None, 4),
        ({}, (PASSED, FAILED), None, 5),
        ({}, (ERROR,), None, 5),
        ({}, (PASSED,), "failed", 5),
        ({}, (PASSED,), "open", 0),
    ],
)
def test_find_exit_code_of_a_run_is_that_of_its_worst_part(values: dict[str, Any], results: Any, part: Any, code: int) -> None:
    parts = (PartResult(id="p", title="t", file="f", verdict=part),) if part else ()
    verdict = ExerciseVerdict(exercise="3.1", run="r", mode="local", verdict="passed", checks=results, parts=parts)
    assert find_exit_code(record(**values), verdict) == code
    assert find_exit_code(record(**values), None) == (4 if values else 0)


def test_find_exit_code_of_a_drill_that_ended_is_0() -> None:
    verdict = ExerciseVerdict(exercise="3.1", run="r", mode="local", verdict="failed", checks=(FAILED,))
    assert find_exit_code(record(state="broken", drill=True), verdict) == 0
    assert find_exit_code(record(state="broken", drill=True, repair=True), verdict) == 4
    assert find_exit_code(record(state="lost", drill=True), None) == 4


def test_find_exit_code_of_a_mutated_run_is_0_only_if_the_expected_check_failed(learning: Learning) -> None:
    exercise = learning.context.catalog.exercise("1.1")[1]
    red_run = learning.record(metrics=METRICS | {"wet": False}, expected_red="wet", edited=["source.py"])
    assert find_exit_code(red_run, verdict_on(learning.context, exercise, red_run)) == 0
    green_run = learning.record(expected_red="wet", edited=["source.py"])
    with pytest.raises(CheckFailed, match="no check failed"):
        find_exit_code(green_run, verdict_on(learning.context, exercise, green_run))


def end_run(learning: Learning, monkeypatch: pytest.MonkeyPatch, *, attended: bool = True, **values: Any) -> RunRecord:
    """Let the next `run` end at once, with this record."""
    deploy(learning)
    record = learning.record(**values)
    outcome = FollowedRun(record=record, verdict=read_run_verdict(learning.context.paths, record)) if attended else None
    monkeypatch.setattr("gpucourse.runs.run.run", lambda *_words, **_options: RunResult(record=record, followed_run=outcome))
    return record


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 4)])
def test_show_result_shows_the_result_of_a_run_and_stores_the_screen(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, state: str, code: int
) -> None:
    record = end_run(learning, monkeypatch, state=state)
    output = learning.types("run", "1.1", code=code).out
    assert record.id in output
    screen = (learning.folder(record) / "screen.svg").read_text()
    assert "gpucourse&#160;run&#160;1.1" in screen
    assert "screen.svg" in read_seal(learning.context.paths.run("1.1", record.id))


def test_outcome_not_as_predicted_names_one_next_step(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    end_run(learning, monkeypatch, expected_red="exact")
    answer = learning.types("run", "1.1", "--no-predict", code=5)
    assert "Next:" not in answer.out
    assert answer.err.count("gpucourse run 1.1 --expect-red") == 1


def test_outcome_of_a_detached_run_says_how_to_follow_it(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    record = end_run(learning, monkeypatch, attended=False, state="running", collected=False)
    assert f"gpucourse logs {record.id} -f" in " ".join(learning.types("run", "1.1", "--detach").out.split())
