"""`quiz`: attempts that are interrupted and continued, and stored one by one."""

from __future__ import annotations

import json

import pytest

from gpucourse.errors import UsageError
from gpucourse.learning import quiz as quizzes
from gpucourse.model.quiz import Tries
from gpucourse.workspace.files import read_record
from tests.learning import Learning

QUIZ = """\
format: 1
title: Water
lessons: [{id: rain, title: Rain, module: "1"}, {id: snow, title: Snow}]
questions:
  - {id: wet, lesson: rain, kind: choice, text: Is it wet?, options: ["yes", "no"], key: a, explanation: It is.}
  - {id: cold, lesson: snow, kind: numeric, text: How cold?, value: 0, unit: C, explanation: It melts.}
  - id: white
    lesson: snow
    module: "1"
    kind: choice
    text: Is it white?
    options: ["yes", "no"]
    key: a
    explanation: It scatters.
"""


@pytest.fixture
def quiz(learning: Learning) -> Learning:
    learning.put("modules/quiz.yaml", QUIZ)
    return learning


def test_quiz_counts_the_best_attempt(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=a", "--set", "cold=0 C", "--set", "white=b")
    assert "no question is answered yet" in quiz.types("quiz", "--again", "--end", code=2).err
    quiz.types("quiz", "--again", "--set", "wet=b")
    quiz.types("quiz", "--end")
    document = quiz.types("quiz", "--json").document
    assert document["best"] == {"right": 2, "of": 3, "tries": 2, "ended": document["best"]["ended"]}
    assert (document["finished"], document["right"]) == (True, 0)
    assert "key" not in json.dumps(document["questions"])
    assert "2 of 3, the best of 2 attempts" in quiz.types("grade").out


def test_quiz_refuses_a_second_answer_and_a_finished_attempt(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=b")
    assert "was already answered in this attempt" in quiz.types("quiz", "--set", "wet=a", code=2).err
    quiz.types("quiz", "--end")
    assert "the last attempt is finished" in quiz.types("quiz", "--set", "wet=a", code=2).err
    assert "the last attempt is finished" in quiz.types("quiz", "--end", code=2).err


def test_quiz_of_a_course_without_one_or_with_mistakes_is_refused(learning: Learning) -> None:
    assert "this course has no quiz" in learning.types("quiz", code=3).err
    learning.put("modules/quiz.yaml", QUIZ.replace("lesson: rain", "lesson: hail"))
    assert "question wet: there is no lesson hail" in learning.types("quiz", "--list", code=2).err


def test_sit_and_take_in_two_terminals_are_one_try(quiz: Learning) -> None:
    context = quiz.open_context()
    first, second = quizzes.sit(context), quizzes.sit(context)
    assert first is not None
    assert second is not None
    quizzes.take(context.paths, first, {"wet": "a"})
    quizzes.take(context.paths, second, {"cold": "0"})
    with pytest.raises(UsageError, match="cold was already answered in this attempt"):
        quizzes.take(context.paths, first, {"cold": "4"})
    quizzes.take(context.paths, first, {"white": "b"})
    with pytest.raises(UsageError, match="finished in another terminal"):
        quizzes.take(context.paths, second, {"white": "a"})
    tries = read_record(context.paths.quiz, Tries)
    assert tries is not None
    assert [len(attempt.answers) for attempt in tries.tries] == [3]
