from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpucourse.model.quiz import Quiz

KEYS: dict[str, Any] = {"lesson": "rain", "text": "t", "explanation": "e"}
WET = KEYS | {"id": "wet", "kind": "choice", "options": ["yes", "no"], "key": "a"}
COLD = KEYS | {"id": "cold", "kind": "numeric", "value": "metrics.cold"}
RAIN = {"id": "rain", "title": "Rain"}


@pytest.mark.parametrize(
    ("lessons", "questions", "complaint"),
    [
        ([RAIN], [COLD], "a quiz does not refer to a run"),
        ([RAIN], [WET | {"lesson": "hail"}], "question wet: there is no lesson hail"),
        ([RAIN], [WET | {"options": ["yes", "yes"]}], "question wet: an option appears twice"),
        ([RAIN], [WET, WET], "the question wet appears twice"),
        ([RAIN, {"id": "fog", "title": "Fog"}], [WET], "lesson fog has no question"),
    ],
)
def test_quiz_with_a_mistake_is_refused(lessons: list[Any], questions: list[Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Quiz.model_validate({"format": 1, "title": "t", "lessons": lessons, "questions": questions})
