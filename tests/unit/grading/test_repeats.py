"""A run compared with its repetition."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.grading.repeats import compare_figures
from gpucourse.model.manifest import Exercise

EXERCISE: dict[str, Any] = {
    "id": "7.1", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "python"}, "tasks": ["t"],
    "hints": ["h"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ({"wet": True, "litres": [1.0]}, {"wet": True, "litres": [1.004]}, ["agrees", "agrees"]),
        ({"wet": True, "litres": [1.0]}, {"wet": True, "litres": [1.02]}, ["agrees", "differs"]),
        ({"wet": True, "litres": [1.0]}, {"wet": True, "litres": [1.0, 1.0]}, ["agrees", "differs"]),
        ({"wet": True}, {"wet": True}, ["agrees", "agrees"]),
        ({"wet": True, "litres": ["nan"]}, {"wet": False, "litres": ["nan"]}, ["differs", "agrees"]),
        ({"wet": True, "litres": [1]}, {}, ["differs", "differs"]),
    ],
)
def test_compare_figures_uses_the_tolerance_of_the_manifest(before: Any, after: Any, verdict: list[str]) -> None:
    check = {"id": "wet", "title": "t", "value": "metrics.wet", "equals": True, "hint": "h"}
    repeat = {"value": "metrics.litres", "tolerance_percent": 1.0}
    exercise = Exercise.model_validate(EXERCISE | {"checks": [check], "same_again": [repeat]})
    figures = compare_figures(exercise, {"metrics": before}, {"metrics": after})
    assert [figure.verdict for figure in figures] == verdict


def test_compare_figures_of_a_time_is_noted_and_never_counted() -> None:
    question = {
        "id": "q", "text": "t", "kind": "numeric", "value": "metrics.median_ms", "tolerance_percent": 5.0, "explanation": "e",
    }  # fmt: skip
    exercise = Exercise.model_validate(EXERCISE | {"questions": [question]})
    [near] = compare_figures(exercise, {"metrics": {"median_ms": 1.0}}, {"metrics": {"median_ms": 7.0}})
    [far] = compare_figures(exercise, {"metrics": {"median_ms": 1.0}}, {"metrics": {"median_ms": 70.0}})
    assert (near.verdict, near.note, far.verdict, far.note) == ("time", "", "time", "differs by a factor of 70")


def test_compare_figures_shows_both_sides_as_text() -> None:
    exercise = Exercise.model_validate(EXERCISE | {"same_again": [{"value": "metrics.litres", "tolerance_percent": 1.0}]})
    [figure] = compare_figures(exercise, {"metrics": {"litres": [1.5, 2, 3, 4, 5]}}, {"metrics": {}})
    assert (figure.bundle, figure.again) == ("1.5, 2, 3, 4, ... (5 values)", "missing")
