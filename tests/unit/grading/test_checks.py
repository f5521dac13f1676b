"""Verdicts: passed, failed, error, not measured, and the one word for all."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gpucourse.grading.checks import evaluate, overall
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Mode
from gpucourse.model.verdict import CheckResult, Verdict

EXERCISE = {
    "id": "7.1", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "python"},
    "tasks": ["t"], "hints": ["h"],
}  # fmt: skip
PLAN = {"world_size": 2, "nodes": 2}


def judge(check: dict[str, Any], metrics: dict[str, Any], mode: Mode = "local") -> CheckResult:
    exercise = Exercise.model_validate(EXERCISE | {"checks": [{"id": "c", "title": "t", "hint": "do this", **check}]})
    verdict = evaluate(exercise, metrics, PLAN, {"state": "succeeded"}, mode=mode, run_id="r1")
    assert (verdict.exercise, verdict.run, verdict.mode, verdict.verdict) == ("7.1", "r1", mode, verdict.checks[0].verdict)
    return verdict.checks[0]


def value(comparison: dict[str, Any], observed: object) -> CheckResult:
    return judge({"value": "metrics.v", **comparison}, {"v": observed})


@pytest.mark.parametrize(
    ("comparison", "observed", "verdict"),
    [
        ({"equals": 0}, 0, "passed"),
        ({"equals": 0}, 1e-300, "failed"),
        ({"equals": 1, "tolerance": 0.1}, 1.1, "failed"),  # 1.1 - 1 is a little more than 0.1
        ({"equals": 1, "tolerance": 0.11}, 1.1, "passed"),
        ({"equals": True}, False, "failed"),
        ({"equals": "gloo"}, "nccl", "failed"),
        ({"equals": "plan.world_size"}, 2, "passed"),
        ({"equals": "plan.world_size"}, 3, "failed"),
        ({"equals": "run.state"}, "succeeded", "passed"),
        ({"at_least": 3}, 3, "passed"),
        ({"at_least": 3}, 2.999, "failed"),
        ({"at_most": 3}, 3, "passed"),
        ({"at_most": "plan.world_size"}, 3, "failed"),
        ({"below": 3}, 3, "failed"),
        ({"above": 3}, 3, "failed"),
        ({"equals": 2**60}, 2**60 + 1, "failed"),
    ],
)
def test_evaluate_comparisons(comparison: dict[str, Any], observed: object, verdict: Verdict) -> None:
    assert value(comparison, observed).verdict == verdict


@pytest.mark.parametrize("comparison", [{"equals": 0}, {"at_least": 0}, {"at_most": 0}, {"below": 0}, {"above": 0}])
@pytest.mark.parametrize("observed", [math.nan, -math.inf, "nan", "Infinity", 10**400])
def test_evaluate_of_a_value_that_is_not_finite_fails(comparison: dict[str, Any], observed: object) -> None:
    assert value(comparison, observed).verdict == "failed"


@pytest.mark.parametrize(
    ("comparison", "observed", "message"),
    [
        ({"equals": 1}, True, "true cannot be compared with 1"),
        ({"equals": True}, 1, "1 cannot be compared with true"),
        ({"equals": 1}, "1", "the text '1' cannot be compared with 1"),
        ({"equals": 0}, None, "null (not measured) cannot be compared with 0"),
        ({"at_least": 0}, "many", "the text 'many' cannot be compared with 0"),
        (
            {"equals": 0},
            [0, 0],
            "a list of 2 values (take min, max, median, sum, last or count of it) cannot be compared with 0",
        ),
        ({"equals": 0}, {"a": 0}, "a mapping cannot be compared with 0"),
    ],
)
def test_evaluate_of_incomparable_values_is_an_error(comparison: dict[str, Any], observed: object, message: str) -> None:
    result = value(comparison, observed)
    assert (result.verdict, result.observed) == ("error", message)
    assert "metrics.json" in result.hint


def test_evaluate_of_a_missing_metric_is_an_error() -> None:
    result = judge({"value": "metrics.rows.ms", "equals": 0}, {})
    assert (result.verdict, result.observed) == ("error", "metrics.rows.ms is missing: metrics has no rows")
    assert result.expected == "0"


def test_evaluate_with_a_missing_operand_is_an_error() -> None:
    result = judge({"value": "metrics.v", "equals": "plan.ranks"}, {"v": 1})
    assert (result.verdict, result.observed) == ("error", "not compared")
    assert result.expected == "unknown: plan.ranks is missing: plan has no ranks"


def test_evaluate_writes_values_with_units() -> None:
    result = judge({"value": "metrics.v", "at_least": 50, "unit": "%"}, {"v": 47.4321})
    assert (result.observed, result.expected, result.hint) == ("47.4321 %", "at least 50 %", "do this")
    result = judge({"value": "metrics.v", "equals": "plan.world_size", "unit": "ranks"}, {"v": 2})
    assert (result.observed, result.expected, result.hint) == ("2 ranks", "2 ranks (plan.world_size)", "")
    result = judge({"value": "metrics.v", "equals": 3, "tolerance": 0.5, "unit": "ms"}, {"v": 3.2})
    assert (result.observed, result.expected) == ("3.2 ms", "3 ± 0.5 ms")
    assert value({"equals": True}, False).observed == "false"
    assert value({"equals": 0}, 1234567).observed == "1,234,567"


GPU = {"value": "metrics.v", "at_least": 3, "unit": "GB/s", "evidence": "gpu"}


def test_evaluate_on_simulated_nodes_measures_nothing_that_needs_a_gpu() -> None:
    for metrics in ({"v": 100}, {"v": 100, "cuda": "13.0"}, {}):
        result = judge(GPU, metrics, "local")
        assert (result.verdict, result.expected) == ("not_measured", "at least 3 GB/s")
        assert "needs a GPU" in result.observed


@pytest.mark.parametrize(
    ("limit", "expected"), [("plan.world_size", "at least 2 GB/s (plan.world_size)"), ("metrics.gpu.least", "")]
)
def test_evaluate_without_a_gpu_shows_a_known_bound(limit: str, expected: str) -> None:
    result = judge(GPU | {"at_least": limit}, {})
    assert (result.verdict, result.expected) == ("not_measured", expected)


def test_evaluate_on_nodes_without_a_gpu_measures_nothing_that_needs_one() -> None:
    assert judge(GPU, {"v": 100, "cuda": None}, "hosts").verdict == "not_measured"
    assert judge(GPU, {"v": 100}, "hosts").verdict == "not_measured", "nobody said that there was one"
    assert judge(GPU, {"v": 100}, "here").verdict == "passed", "such a lab stands only where there is one"
    assert judge(GPU, {"v": 100, "cuda": None}, "here").verdict == "not_measured", "the script did not use it"


def test_evaluate_on_a_gpu() -> None:
    assert judge(GPU, {"v": 100, "cuda": "13.0"}, "aws").verdict == "passed"
    assert judge(GPU, {"v": 1, "cuda": "13.0"}, "aws").verdict == "failed"
    assert judge(GPU, {"cuda": "13.0"}, "aws").verdict == "error"


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ([], "not_measured"),
        (["not_measured"], "not_measured"),
        (["passed", "not_measured"], "passed"),
        (["passed", "error", "not_measured"], "error"),
        (["passed", "error", "failed"], "failed"),
    ],
)
def test_overall(words: list[Verdict], word: Verdict) -> None:
    results = [
        CheckResult(id="c", title="t", verdict=verdict, evidence="logic", observed="", expected="", hint="")
        for verdict in words
    ]
    assert overall(results) == word


@pytest.mark.parametrize(
    ("observed", "verdict", "message"),
    [(None, "not_measured", "not answered yet"), (True, "passed", "true"), (False, "failed", "false")],
)
def test_evaluate_of_a_value_that_was_left_open(observed: bool | None, verdict: Verdict, message: str) -> None:
    result = value({"equals": True, "when_open": "not answered yet"}, observed)
    assert (result.verdict, result.observed) == (verdict, message)


def test_evaluate_of_a_missing_value_is_not_left_open() -> None:
    check = {"value": "metrics.gone", "equals": True, "when_open": "not answered yet"}
    assert judge(check, {}).verdict == "error"
