"""A script that was edited to write only the numbers passes every check of its exercise, and counts for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.grading.contradictions import find_contradictions
from gpucourse.grading.printed import RankLog
from gpucourse.model.check import Check
from gpucourse.model.fields import EXPRESSION, Scalar, is_evidence
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from tests import log_table

EXERCISES = [exercise for module in load(find_course({})).modules for exercise in module.exercises]
PLAN: dict[str, Any] = {"world_size": 2, "nodes": 2}
AT_A_TERMINAL = "2.2"
"""A session that the learner types: what it may lack is compared where it is there."""


def invent(exercise: Exercise) -> dict[str, Any]:
    """The least that passes the checks of an exercise that need no GPU."""
    metrics: dict[str, Any] = {"world_size": 2, "cuda": None}
    for check in sorted(exercise.checks, key=lambda check: "count(" not in check.value):
        _, operand = check.comparison
        if check.evidence == "logic":
            put(metrics, check.value, choose(check, find_operand(metrics, operand)))
    return metrics


def find_operand(metrics: dict[str, Any], operand: Scalar) -> Any:
    if not isinstance(operand, str) or not is_evidence(operand):
        return operand
    if operand.startswith("plan."):
        return PLAN.get(operand.removeprefix("plan."), 5)
    put(metrics, operand, 1)
    return 1


def choose(check: Check, operand: Any) -> Any:
    """A value that passes."""
    return {"above": lambda: operand + 1, "below": lambda: operand - 1}.get(check.comparison[0].name, lambda: operand)()


def put(metrics: dict[str, Any], expression: str, value: Any) -> None:
    """Put a value where an expression reads it, in one row where it reads rows."""
    match = EXPRESSION.match(expression)
    assert match
    *path, last = match["path"].split(".")[1:]
    if match["reduce"] == "count":
        put_at(metrics, path)[last] = [{} for _ in range(int(value))]
        return
    if match["reduce"] and path:
        *above, rows = path
        place = put_at(metrics, above)
        place[rows] = [row | {last: value} for row in (place.get(rows) or [{}])]
        return
    put_at(metrics, path)[last] = [value] if match["reduce"] else value


def put_at(metrics: dict[str, Any], path: list[str]) -> dict[str, Any]:
    for name in path:
        metrics = metrics.setdefault(name, {})
    return metrics


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_find_contradictions_of_invented_numbers_without_logs(exercise: Exercise) -> None:
    logs = [RankLog(rank, ("all done", "")) for rank in range(2)]
    record = RunRecord(
        id="20260101-100000-otter", exercise=exercise.id, module="3", stack="03-local", mode="local", launcher="torchrun",
        state="succeeded", created="2026-01-01T10:00:00+00:00", world_size=2,
    )  # fmt: skip
    more = {"right": 256, "asked": 256} if exercise.id == AT_A_TERMINAL else {}
    assert find_contradictions(exercise, record, invent(exercise) | more, logs)


def test_page_of_values_that_no_log_speaks_of_is_current() -> None:
    text = log_table.PAGE.read_text(encoding="utf-8")
    assert log_table.make_page(log_table.make_table()) == text, "write it again: python -m tests.log_table --write"
