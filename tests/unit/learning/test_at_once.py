"""Two terminals at once: what one of them keeps, the other does not write over."""

from __future__ import annotations

import pytest

from gpucourse.errors import UsageError
from gpucourse.learning import answer, quiz
from gpucourse.model.quiz import Tries
from gpucourse.workspace.files import read_record
from tests.learning import Learning

QUIZ = """\
format: 1
title: Water
lessons: [{id: rain, title: Rain}]
questions:
  - {id: wet, lesson: rain, kind: choice, text: Is it wet?, options: ["yes", "no"], key: a, explanation: It is.}
  - {id: cold, lesson: rain, kind: numeric, text: How cold?, value: 4, unit: C, explanation: It falls.}
  - {id: white, lesson: rain, kind: choice, text: Is it white?, options: ["yes", "no"], key: b, explanation: That is snow.}
"""


def test_answers_of_two_terminals_stand_side_by_side(learning: Learning) -> None:
    learning.record()
    first, second = (answer.begin(learning.open_context(), "1.1") for _ in range(2))
    answer.take(learning.open_context(), first, {"where": "b"})
    results = answer.take(learning.open_context(), second, {"speedup": "1.9"})
    assert {result.id: result.verdict for result in results if result.verdict != "open"} == {
        "where": "passed",
        "speedup": "passed",
    }
    answer.take(learning.open_context(), first, {"where": None})
    assert set(answer.begin(learning.open_context(), "1.1").answers) == {"speedup"}


def test_a_try_of_the_quiz_is_one_try_in_two_terminals(learning: Learning) -> None:
    learning.put("modules/quiz.yaml", QUIZ)
    context = learning.open_context()
    first, second = quiz.sit(context), quiz.sit(context)
    assert first is not None
    assert second is not None
    quiz.take(context, first, {"wet": "a"})
    quiz.take(context, second, {"cold": "4"})
    with pytest.raises(UsageError, match="cold was answered in this attempt already"):
        quiz.take(context, first, {"cold": "0"})
    quiz.take(context, first, {"white": "b"})
    with pytest.raises(UsageError, match="finished in another terminal"):
        quiz.take(context, second, {"white": "a"})
    kept = read_record(context.paths.quiz, Tries)
    assert kept is not None
    assert [len(attempt.answers) for attempt in kept.tries] == [3]
