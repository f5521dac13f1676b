"""A prediction compared with the measurement of a run."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.grading.answers import compare
from gpucourse.model.questions import Prediction

METRICS = {"metrics": {"sent_mb": 150.0, "nothing": 0, "late": None, "times": [2.0, 4.0]}}


def make_number(**fields: Any) -> Prediction:
    defaults = {"id": "sent", "text": "How much?", "value": "metrics.sent_mb", "unit": "MB", "tolerance_percent": 10.0}
    return Prediction.model_validate(defaults | fields)


@pytest.mark.parametrize(
    ("answer", "verdict", "off", "ratio"),
    [
        ("150", "passed", "0 %", 1.0),
        ("160 MB", "passed", "+6.67 %", 160 / 150),
        ("200", "failed", "+33.3 %", 200 / 150),
        ("15", "failed", "-90 %", 0.1),
        ("-150", "failed", "-200 %", None),
    ],
)
def test_compare_says_how_far_off_a_number_is(answer: str, verdict: str, off: str, ratio: float | None) -> None:
    result = compare(make_number(), answer, METRICS, on_gpu=False)
    assert (result.verdict, result.measurement, result.difference) == (verdict, "150 MB", off)
    assert result.ratio == (None if ratio is None else pytest.approx(ratio))


def test_compare_with_a_band() -> None:
    question = Prediction.model_validate(
        {"id": "t", "text": "How long?", "low": "min(metrics.times)", "high": "max(metrics.times)", "unit": "ms"}
    )
    hit, beyond = (compare(question, answer, METRICS, on_gpu=False) for answer in ("3", "8"))
    assert (hit.verdict, hit.measurement, hit.difference, hit.ratio) == ("passed", "2 to 4 ms", "0 %", 1.0)
    assert (beyond.verdict, beyond.difference, beyond.ratio) == ("failed", "+100 %", 2.0)


def test_compare_with_zero_has_no_percent() -> None:
    result = compare(make_number(value="metrics.nothing"), "5", METRICS, on_gpu=False)
    assert (result.verdict, result.difference, result.ratio) == ("failed", "5 MB", None)


def test_compare_with_a_value_that_was_not_measured() -> None:
    for question, evidence, verdict, words in (
        (make_number(value="metrics.late"), METRICS, "error", "your run did not record metrics.late"),
        (make_number(evidence="gpu"), METRICS, "not_measured", "needs a GPU"),
        (make_number(), None, "error", "there is no run to compare it with"),
    ):
        result = compare(question, "5", evidence, on_gpu=False)
        assert (result.verdict, result.measurement, result.ratio) == (verdict, "", None)
        assert words in result.difference


def test_compare_a_choice() -> None:
    question = Prediction.model_validate({"id": "which", "text": "Which?", "options": ["this", "that"], "key": "b"})
    hit, miss = (compare(question, answer, METRICS, on_gpu=False) for answer in ("b", "this"))
    assert (hit.verdict, hit.prediction, hit.measurement, hit.difference) == ("passed", "b. that", "b. that", "right")
    assert (miss.verdict, miss.prediction, miss.difference) == ("failed", "a. this", "not what was measured")


def make_direction(ranges: dict[str, list[float | None]], value: str = "metrics.sent_mb") -> Prediction:
    options = ["less: a", "about as much: b", "more: c", "less: d"]
    keys = {"id": "way", "text": "Which way?", "unit": "MB", "value": value, "options": options, "ranges": ranges}
    return Prediction.model_validate(keys)


@pytest.mark.parametrize("ranges", [{"b": [150, 200], "a": [None, 150]}, {"b": [100, None], "c": [150, 151], "a": [None, 100]}])
def test_compute_credit_of_guessed_directions_is_nothing_on_average(ranges: dict[str, list[float | None]]) -> None:
    question = make_direction(ranges)
    results = {letter: compare(question, letter, METRICS, on_gpu=False) for letter in question.choices}
    right_letters = {letter for letter, result in results.items() if result.verdict == "passed"}
    assert right_letters == set(ranges) - {"a"}
    assert {result.measurement for result in results.values()} == {"150 MB"}
    assert sum(result.share or 0 for result in results.values()) == pytest.approx(0)
    words = " or ".join(sorted(right_letters))
    assert (results["a"].prediction, results["a"].deviation) == ("a. less: a", f"{words} is right")


@pytest.mark.parametrize(
    ("value", "verdict", "measurement", "words"),
    [
        ("metrics.sent_mb", "error", "150 MB", "not judged: no option covers this value"),
        ("metrics.late", "error", "", "your run did not record metrics.late"),
    ],
)
def test_compare_of_a_direction_that_no_range_contains_is_not_judged(
    value: str, verdict: str, measurement: str, words: str
) -> None:
    result = compare(make_direction({"a": [None, 100], "b": [200, None]}, value), "a", METRICS, on_gpu=False)
    assert (result.verdict, result.measurement, result.difference, result.share) == (verdict, measurement, words, None)


def test_compare_refuses_anything_but_a_number() -> None:
    with pytest.raises(ValueError, match="'soon' is not a number"):
        compare(make_number(), "soon", METRICS, on_gpu=False)
