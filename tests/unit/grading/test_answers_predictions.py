"""A prediction beside what a run measured."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.grading.answers import compare
from gpucourse.model.questions import Prediction

METRICS = {"metrics": {"sent_mb": 150.0, "nothing": 0, "late": None, "times": [2.0, 4.0]}}


def make_number(**other: Any) -> Prediction:
    asked = {"id": "sent", "text": "How much?", "value": "metrics.sent_mb", "unit": "MB", "tolerance_percent": 10.0}
    return Prediction.model_validate(asked | other)


@pytest.mark.parametrize(
    ("given", "verdict", "off", "ratio"),
    [
        ("150", "passed", "0 %", 1.0),
        ("160 MB", "passed", "+6.67 %", 160 / 150),
        ("200", "failed", "+33.3 %", 200 / 150),
        ("15", "failed", "-90 %", 0.1),
        ("-150", "failed", "-200 %", None),
    ],
)
def test_compare_says_how_far_off_a_number_is(given: str, verdict: str, off: str, ratio: float | None) -> None:
    result = compare(make_number(), given, METRICS, on_gpu=False)
    assert (result.verdict, result.measurement, result.difference) == (verdict, "150 MB", off)
    assert result.ratio == (None if ratio is None else pytest.approx(ratio))


def test_compare_with_a_band() -> None:
    question = Prediction.model_validate(
        {"id": "t", "text": "How long?", "low": "min(metrics.times)", "high": "max(metrics.times)", "unit": "ms"}
    )
    inside, beyond = (compare(question, given, METRICS, on_gpu=False) for given in ("3", "8"))
    assert (inside.verdict, inside.measurement, inside.difference, inside.ratio) == ("passed", "2 to 4 ms", "0 %", 1.0)
    assert (beyond.verdict, beyond.difference, beyond.ratio) == ("failed", "+100 %", 2.0)


def test_compare_with_zero_has_no_percent() -> None:
    result = compare(make_number(value="metrics.nothing"), "5", METRICS, on_gpu=False)
    assert (result.verdict, result.difference, result.ratio) == ("failed", "5 MB", None)


def test_compare_with_what_was_not_measured() -> None:
    for asked, evidence, verdict, words in (
        (make_number(value="metrics.late"), METRICS, "error", "your run did not record metrics.late"),
        (make_number(evidence="gpu"), METRICS, "not_measured", "needs a GPU"),
        (make_number(), None, "error", "there is no run to compare it with"),
    ):
        result = compare(asked, "5", evidence, on_gpu=False)
        assert (result.verdict, result.measurement, result.ratio) == (verdict, "", None)
        assert words in result.difference


def test_compare_a_choice() -> None:
    question = Prediction.model_validate({"id": "which", "text": "Which?", "options": ["this", "that"], "key": "b"})
    right, wrong = (compare(question, given, METRICS, on_gpu=False) for given in ("b", "this"))
    assert (right.verdict, right.prediction, right.measurement, right.difference) == ("passed", "b. that", "b. that", "right")
    assert (wrong.verdict, wrong.prediction, wrong.difference) == ("failed", "a. this", "not what was measured")


def test_compare_refuses_what_is_no_number() -> None:
    with pytest.raises(ValueError, match="'soon' is not a number"):
        compare(make_number(), "soon", METRICS, on_gpu=False)
