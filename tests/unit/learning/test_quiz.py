"""`quiz`: asked, left and taken up again, kept try by try."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from gpucourse.course.quiz import read_quiz
from gpucourse.grading.answers import judge
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


FOUND = read_quiz(find_course({}).modules)
QUESTIONS = FOUND.questions if FOUND else ()


def test_letter_of_the_right_choice_tells_nothing() -> None:
    keys = [question.key for question in QUESTIONS if question.key]
    assert all(keys.count(key) <= len(keys) // 2 for key in "abcd")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_the_right_answer_is_right_and_every_other_is_not(question: Any) -> None:
    if question.kind == "choice":
        right = [name for name in question.choices if judge(question, name, {}, on_gpu=False).verdict == "passed"]
        assert right == [question.key]
    else:
        assert judge(question, question.value, {}, on_gpu=False).verdict == "passed"
        assert judge(question, question.value * 1.01 + 0.1, {}, on_gpu=False).verdict == "failed"


def test_what_the_numbers_of_this_quiz_are_made_of() -> None:
    by_name = {question.id: question.value for question in QUESTIONS}
    assert by_name["blocks"] == -(-10_000 // 256)
    assert by_name["ring-bytes"] == 2 * (4 - 1) / 4 * 100
    assert by_name["global-rank"] == 2 * 8 + 5
    assert by_name["efficiency"] == 100 * (120 / 40) / 4
    assert by_name["bubble"] == 100 * (4 - 1) / (12 + 4 - 1)
    assert by_name["adam-bytes"] == 2 + 2 + 4 + 4 + 4
    assert by_name["strided-load"] == len({4 * 8 * lane // 32 for lane in range(32)})
    assert by_name["column-of-a-tile"] == max(Counter(32 * row % 32 for row in range(32)).values())
    assert by_name["attention-scores"] == 8 * 16 * 4096**2 * 2 / 2**30
    assert by_name["three-kernels"] == 3 * (1 + 1) / (1 + 1)
    assert by_name["zero-one"] == pytest.approx(1.3 * (2 + 2 + 12 / 4))
    assert by_name["steps-again"] == 237 - 200
    assert by_name["young"] == pytest.approx((2 * 60 * 3 * 3600) ** 0.5 / 60, abs=0.1)
    assert by_name["step-bound"] == pytest.approx(6 * 7e9 * 1e6 / (64 * 0.5 * 312e12), abs=0.05)
    assert f"{32 * 1024 * 50257 * 4 / 2**30:.2f} GiB" in next(item.text for item in QUESTIONS if item.id == "which-tensor")
    assert by_name["one-slow-hop"] == 1000 * 2 * (4 - 1) / 4 * 2 / min(300, 25)
    lower = -(-60 // (40 // 2))
    assert by_name["switches-in-all"] == lower + -(-lower * 20 // 40)
    assert by_name["beside-a-4g"] == min(len([start for start in range(7) if start >= 4]), 7 - 4)
    assert by_name["roofline"] == pytest.approx(10 * 320 / 1000)


def test_a_try_is_left_and_taken_up_again(quiz: Learning) -> None:
    said = quiz.types("quiz", typing="a\n\n")  # right; the second left open; then Ctrl-D
    assert "1 of 3 answered, 1 right so far" in said.out
    assert "It is." in said.out
    said = quiz.types("quiz", typing="many\n4\nb\n")
    assert "Is it wet?" not in said.out
    assert "'many' is not a number" in said.err
    assert "1 of 3 right" in said.out
    assert "It scatters." in said.out.split("Wrong answers")[1]
    assert "1 of 3 right" in quiz.types("quiz").out, "the result stays"


def test_an_interrupted_quiz_keeps_its_answers(quiz: Learning) -> None:
    said = quiz.types("quiz", typing=InterruptedTerminal(), code=130).err
    assert "the quiz is interrupted; every answer so far is kept" in said


def test_the_best_try_counts(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=a", "--set", "cold=0 C", "--set", "white=b")
    quiz.types("quiz", "--again", "--set", "wet=b")
    quiz.types("quiz", "--end")
    document = quiz.types("quiz", "--json").document
    assert document["best"] == {"right": 2, "of": 3, "tries": 2, "ended": document["best"]["ended"]}
    assert (document["finished"], document["right"]) == (True, 0)
    assert "key" not in json.dumps(document["questions"])
    assert "2 of 3, the best of 2 attempts" in quiz.types("grade").out


def test_questions_without_their_keys(quiz: Learning) -> None:
    said = quiz.types("quiz", "--list").out
    assert "a. yes" in said
    assert "It melts." not in said


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
def test_wrong_words(quiz: Learning, words: list[str], said: str) -> None:
    assert said in quiz.types("quiz", *words, code=2).err
    assert not (quiz.workspace / ".gpucourse/quiz.json").exists()


def test_an_answer_stays_and_a_finished_try_too(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=b")
    assert "was answered in this attempt already" in quiz.types("quiz", "--set", "wet=a", code=2).err
    quiz.types("quiz", "--end")
    assert "the last attempt is finished" in quiz.types("quiz", "--set", "wet=a", code=2).err
    assert "the last attempt is finished" in quiz.types("quiz", "--end", code=2).err


def test_tries_of_a_newer_version_or_damaged_are_refused_and_kept(quiz: Learning) -> None:
    quiz.types("quiz", "--set", "wet=b")
    path = quiz.workspace / ".gpucourse/quiz.json"
    for text, said in ((path.read_text().replace('"version": 1', '"version": 2'), "has format 2"), ("{", "is damaged")):
        path.write_text(text)
        assert said in quiz.types("quiz", "--set", "cold=0", code=3).err
        assert path.read_text() == text


def test_a_course_without_a_quiz_and_one_that_is_wrong(learning: Learning) -> None:
    assert "this course has no quiz" in learning.types("quiz", code=3).err
    for old, new, said in (
        ("value: 0", "value: metrics.cold", "a quiz asks about no run"),
        ("lesson: rain", "lesson: hail", "question wet: there is no lesson hail"),
        ("explanation: It is.", "look_for: x", "is missing"),
        ("{id: snow, title: Snow}", "{id: snow, title: Snow}, {id: fog, title: Fog}", "lesson fog has no question"),
    ):
        learning.put("modules/quiz.yaml", QUIZ.replace(old, new))
        assert said in learning.types("quiz", "--list", code=2).err
