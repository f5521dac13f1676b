"""The exit code of a run: 0, 4 if it failed, 5 if a check or a part did."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.cli.outcome import code_of
from gpucourse.errors import CheckFailed
from gpucourse.model.verdict import ExerciseVerdict, PartResult
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
    right = learning.record(metrics=METRICS | {"wet": False}, expected_red="wet", edited=["source.py"])
    assert code_of(right, verdict_on(learning.context, exercise, right)) == 0
    wrong = learning.record(expected_red="wet", edited=["source.py"])
    with pytest.raises(CheckFailed, match="no check failed"):
        code_of(wrong, verdict_on(learning.context, exercise, wrong))
