"""`quiz`: asked, left and taken up again, kept try by try."""

from __future__ import annotations

import json

import pytest

from gpucourse.errors import UsageError
from gpucourse.learning import quiz as quizzes
from gpucourse.model.quiz import Tries
from gpucourse.workspace.files import read_record
from tests.learning import InterruptedTerminal, Learning

QUIZ = """\
format: 1
title: Water
lessons: [{id: rain, title: Rain}, {id: snow, title: Snow}]
questions:
  - {id: wet, lesson: rain, kind: choice, text: Is it wet?, options: ["yes", "no"], key: a, explanation: It is.}
  - {id: cold, lesson: snow, kind: numeric, text: How cold?, value: 0, unit: C, explanation: It melts.}
  - {id: white, lesson: snow, kind: choice, text: Is it white?, options: ["yes", "no"], key: a, explanation: It scatters.}
"""


@pytest.fixture
def quiz(learning: Learning) -> Learning:
    learning.put("modules/quiz.yaml", QUIZ)
    return learning


def test_quiz_goes_on_where_it_was_left(quiz: Learning) -> None:
    said = quiz.types("quiz", typing="a\n\n")  # right; the second left open; then Ctrl-D
    assert "1 of 3 answered, 1 right so far" in said.out
    assert "It is." in said.out
    said = quiz.types("quiz", typing="many\n4\nb\n")
    assert "Is it wet?" not in said.out
    assert "'many' is not a number" in said.err
    assert "1 of 3 right" in said.out
    assert "It scatters." in said.out.split("Wrong answers")[1]
    assert "1 of 3 right" in quiz.types("quiz").out, "the result stays"


def test_quiz_that_is_interrupted_keeps_its_answers(quiz: Learning) -> None:
    said = quiz.types("quiz", typing=InterruptedTerminal(), code=130).err
    assert "the quiz is interrupted; every answer so far is kept" in said


def test_quiz_counts_the_best_attempt(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=a", "--set", "cold=0 C", "--set", "white=b")
    quiz.types("quiz", "--again", "--set", "wet=b")
    quiz.types("quiz", "--end")
    document = quiz.types("quiz", "--json").document
    assert document["best"] == {"right": 2, "of": 3, "tries": 2, "ended": document["best"]["ended"]}
    assert (document["finished"], document["right"]) == (True, 0)
    assert "key" not in json.dumps(document["questions"])
    assert "2 of 3, the best of 2 attempts" in quiz.types("grade").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "weet=a"], "there is no question of the quiz 'weet'. Did you mean wet?"),
        (["--set", "wet=z"], "the answer to wet: 'z' is not one of a, b"),
        (["--set", "cold=4 K"], "the question asks for C"),
        (["--set", "wet"], "not of the form name=value"),
        ([], "the quiz needs a terminal"),
    ],
)
def test_quiz_with_wrong_words_names_them(quiz: Learning, words: list[str], said: str) -> None:
    assert said in quiz.types("quiz", *words, code=2).err
    assert not (quiz.workspace / ".gpucourse/quiz.json").exists()


def test_quiz_refuses_a_second_answer_and_a_finished_attempt(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=b")
    assert "was answered in this attempt already" in quiz.types("quiz", "--set", "wet=a", code=2).err
    quiz.types("quiz", "--end")
    assert "the last attempt is finished" in quiz.types("quiz", "--set", "wet=a", code=2).err
    assert "the last attempt is finished" in quiz.types("quiz", "--end", code=2).err


def test_quiz_with_attempts_of_a_newer_version_or_damaged_ones_is_refused(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=b")
    path = quiz.workspace / ".gpucourse/quiz.json"
    for text, said in ((path.read_text().replace('"version": 1', '"version": 2'), "has format 2"), ("{", "is damaged")):
        path.write_text(text)
        assert said in quiz.types("quiz", "--set", "cold=0", code=3).err
        assert path.read_text() == text


def test_quiz_of_a_course_without_one_or_with_mistakes_is_refused(learning: Learning) -> None:
    assert "this course has no quiz" in learning.types("quiz", code=3).err
    learning.put("modules/quiz.yaml", QUIZ.replace("lesson: rain", "lesson: hail"))
    assert "question wet: there is no lesson hail" in learning.types("quiz", "--list", code=2).err


def test_quiz_in_two_terminals_is_one_try(quiz: Learning) -> None:
    context = quiz.open_context()
    first, second = quizzes.sit(context), quizzes.sit(context)
    assert first is not None
    assert second is not None
    quizzes.take(context, first, {"wet": "a"})
    quizzes.take(context, second, {"cold": "0"})
    with pytest.raises(UsageError, match="cold was answered in this attempt already"):
        quizzes.take(context, first, {"cold": "4"})
    quizzes.take(context, first, {"white": "b"})
    with pytest.raises(UsageError, match="finished in another terminal"):
        quizzes.take(context, second, {"white": "a"})
    kept = read_record(context.paths.quiz, Tries)
    assert kept is not None
    assert [len(attempt.answers) for attempt in kept.tries] == [3]
