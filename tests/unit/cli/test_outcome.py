"""The exit code of a run: 0, 4 if it failed, 5 if a check or a part did."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.cli.outcome import code_of
from gpucourse.errors import CheckFailed
from gpucourse.model.verdict import ExerciseVerdict, PartResult
from gpucourse.runs.mutations import confirm_expectation
from gpucourse.runs.results import verdict_on
from tests.learning import METRICS, Learning
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
def test_code_of_a_run_is_that_of_its_worst_part(values: dict[str, Any], results: Any, part: Any, code: int) -> None:
    parts = (PartResult(id="p", title="t", file="f", verdict=part),) if part else ()
    verdict = ExerciseVerdict(exercise="3.1", run="r", mode="local", verdict="passed", checks=results, parts=parts)
    assert code_of(record(**values), verdict) == code
    assert code_of(record(**values), None) == (4 if values else 0)


def test_code_of_a_mutated_run_is_0_only_if_the_expected_check_failed(learning: Learning) -> None:
    exercise = learning.context.catalog.exercise("1.1")[1]
    dry = METRICS | {"wet": False}
    right = learning.record(metrics=dry, expected_red="wet", edited=["source.py"])
    verdict = verdict_on(learning.context, exercise, right)
    assert code_of(right, verdict) == 0
    assert confirm_expectation(right, verdict) == "as you predicted: wet failed, and no other check"
    for expected, metrics, words in (("flows", dry, "wet failed"), ("wet", METRICS, "no check failed")):
        wrong = learning.record(metrics=metrics, expected_red=expected, edited=["source.py"])
        with pytest.raises(CheckFailed, match=words):
            code_of(wrong, verdict_on(learning.context, exercise, wrong))
