from __future__ import annotations

from gpucourse.model.quiz import Quiz
from gpucourse.ui.views import quiz
from tests.unit.ui.examples import text

KEYS = {"kind": "choice", "options": ["yes", "no"], "key": "a"}
QUIZ = Quiz.model_validate(
    {
        "format": 1, "title": "Water", "lessons": [{"id": "rain", "title": "Rain"}],
        "questions": [
            KEYS | {"id": name, "lesson": "rain", "text": f"Is it {name}?", "explanation": f"{name} it is."}
            for name in ("wet", "cold")
        ],
    }
)  # fmt: skip


def test_questions_show_no_keys_and_no_explanations() -> None:
    output = text(quiz.questions(QUIZ, QUIZ.questions))
    assert "wet   Is it wet?\n        a. yes\n        b. no\n" in output
    assert "it is." not in output
