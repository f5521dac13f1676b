from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpucourse.model.questions import Prediction, Question

CHOICE: dict[str, Any] = {"kind": "choice", "options": ["a lake", "the sea"]}


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"kind": "numeric"}, "needs value, or low and high together"),
        ({"kind": "numeric", "low": "metrics.a"}, "needs value, or low and high together"),
        ({"kind": "numeric", "value": 3, "low": "metrics.a", "high": "metrics.b"}, "needs value, or low and high together"),
        ({"kind": "numeric", "value": float("inf")}, "inf is not a finite number"),
        ({"kind": "choice", "options": ["a"], "key": "a"}, "a choice needs at least 2 options; has 1"),
        (CHOICE, "key must be the letter of an option, a, b; is missing"),
        (CHOICE | {"key": "c"}, "key must be the letter of an option, a, b; is c"),
        ({"key": "a"}, "key belongs to kind: choice, but this is kind: text"),
        ({"kind": "mutation", "check": "wet"}, "a mutation needs check, edit, was, becomes; lacks edit, was, becomes"),
    ],
)
def test_question_of_two_kinds_or_of_half_a_kind_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Question.model_validate({"id": "q", "text": "t", **keys})


def test_prediction_is_a_choice_if_it_has_options() -> None:
    choice = Prediction.model_validate({"id": "p", "text": "t", "options": CHOICE["options"], "key": "b"})
    assert (choice.kind, choice.choices) == ("choice", {"a": "a lake", "b": "the sea"})
    assert Prediction.model_validate({"id": "p", "text": "t", "value": "metrics.v"}).kind == "numeric"


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"ranges": {"a": [None, None]}}, "a range needs a low or a high end"),
        ({"ranges": {"a": [2, 1]}}, "the low end 2 is not below the high end 1"),
        ({"ranges": {"e": [1, 2]}}, "e is not the letter of an option, a, b, c, d"),
        ({"ranges": {"a": [1, 3], "b": [2, None], "c": [None, 2.5]}}, "a, b, c are right for 2, which is more than half"),
        ({"ranges": {"a": [1, 2]}, "key": "a"}, "key cannot be combined with ranges"),
        ({"ranges": {"a": [1, 2]}, "value": 1.0}, "ranges need a value: the path to a number that the run measures"),
    ],
)
def test_prediction_with_wrong_ranges_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Prediction.model_validate({"id": "p", "text": "t", "value": "metrics.v", "options": ["w", "x", "y", "z"], **keys})
