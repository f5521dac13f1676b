"""The command `quiz`: at a terminal, typed and interrupted."""

from __future__ import annotations

import pytest

from tests.learning import InterruptedTerminal, Learning
from tests.unit.learning.test_quiz import QUIZ


@pytest.fixture
def quiz(learning: Learning) -> Learning:
    learning.put("modules/quiz.yaml", QUIZ)
    return learning


def test_quiz_continues_where_it_was_interrupted(quiz: Learning) -> None:
    result = quiz.types("quiz", typing="a\n\n")  # right; the second left open; then Ctrl-D
    assert "1 of 3 answered, 1 right so far" in result.out
    assert "It is." in result.out
    result = quiz.types("quiz", typing="many\n4\nb\n5\na\n0\n")
    assert "Is it wet?" not in result.out
    assert "Questions that you answered wrong are asked again, for practice" in result.out
    assert result.out.count("Is it white?") == 2
    assert result.out.count("How cold?") == 3, "until it is right"
    assert "'many' is not a number" in result.err
    assert "1 of 3 right" in result.out
    assert "It scatters." in result.out.split("Wrong answers")[1]
    assert "1 of 3 right" in quiz.types("quiz").out, "the result stays"


def test_quiz_of_a_module_is_part_of_the_attempt_and_then_practice(quiz: Learning) -> None:
    result = quiz.types("quiz", "1", typing="a\na\n")
    assert "How cold?" not in result.out
    assert "2 of 2 · Snow" in result.out
    assert "2 of 2 right, 0 wrong, 0 open" in result.out
    assert "2 of 3 answered" in result.out
    assert "Next: gpucourse deploy 1" in result.out
    result = quiz.types("quiz", "1", typing="b\na\na\n")
    assert "They are now practice" in result.out
    assert result.out.count("Is it wet?") == 2, "the wrong one comes again"
    assert "2 of 2 right" in result.out, "practice changes no points"
    document = quiz.types("quiz", "1", "--json").document
    assert (document["module"], document["right"], document["of"], document["finished"]) == ("1", 2, 2, False)
    assert quiz.types("quiz", typing="0\n").out.startswith("2 of 3")
    assert "3 of 3 right" in quiz.types("quiz").out


def test_quiz_that_is_interrupted_keeps_its_answers(quiz: Learning) -> None:
    message = quiz.types("quiz", typing=InterruptedTerminal(), code=130).err
    assert "the quiz is interrupted; every answer so far is kept" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "weet=a"], "there is no quiz question 'weet'. Did you mean wet?"),
        (["--set", "wet=z"], "the answer to wet: 'z' is not one of a, b"),
        (["--set", "cold=4 K"], "the question asks for C"),
        (["--set", "wet"], "not of the form name=value"),
        ([], "the quiz needs a terminal"),
        (["1", "--set", "cold=0"], "there is no quiz question 'cold'"),
        (["1", "--end"], "--end finishes the whole attempt"),
        (["7"], "there is no module '7'"),
    ],
)
def test_quiz_with_wrong_arguments_names_them(quiz: Learning, words: list[str], message: str) -> None:
    assert message in quiz.types("quiz", *words, code=2).err
    assert not (quiz.workspace / ".gpucourse/quiz.json").exists()
