from __future__ import annotations

from dataclasses import replace

from gpucourse.model.answer import AnswerResult
from gpucourse.model.quiz import Quiz, Tries
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
    output = text(quiz.questions(QUIZ))
    assert "wet   Is it wet?\n        a. yes\n        b. no\n" in output
    assert "it is." not in output


def test_question_shows_its_number_and_its_choices() -> None:
    page = text(quiz.question(QUIZ, QUIZ.questions[1], 2))
    assert page.startswith("2 of 2 Rain\n")
    assert "b. no" in page
    assert "it is." not in page


def test_result_explains_what_was_wrong() -> None:
    wet = AnswerResult(id="wet", kind="choice", text="", verdict="passed")
    answers = [wet, replace(wet, id="cold", verdict="failed")]
    page = text(quiz.result(QUIZ, answers, Tries()))
    assert "1 of 2 right" in page
    assert "cold  cold it is." in page
    assert "wet it is." not in page
