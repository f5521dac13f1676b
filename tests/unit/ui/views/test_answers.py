from __future__ import annotations

from gpucourse.model.answer import AnswerResult
from gpucourse.ui.views.answers import answers
from tests.unit.ui.examples import EXERCISE, text

RESULTS = (
    AnswerResult(id="why", kind="text", text="Why?", verdict="kept", answer="It falls.", look_for="gravity"),
    AnswerResult(id="fast", kind="numeric", text="How fast?", verdict="failed", said="2; it is 3", explanation="Count."),
    AnswerResult(id="busy", kind="numeric", text="How busy?", verdict="open"),
    AnswerResult(id="dry", kind="mutation", text="Dry it.", verdict="open"),
)


def test_answers_show_each_result_and_what_is_still_open() -> None:
    output = text(answers(EXERCISE, RESULTS, new_results=RESULTS[:2], run="otter"))
    for words in (
        "3.1 questions, run otter", "• why: saved", "A good answer says: gravity", "✗ fast: 2; it is 3\n\nCount.",
        "•  why       It falls.  saved", "✗  fast                 wrong, 1 attempt left", "open, a run answers it",
        "4 questions: 1 wrong, 1 saved, 2 open\n", "gpucourse answer 3.1 --review",
    ):  # fmt: skip
        assert words in output, words
    brief = text(answers(EXERCISE, RESULTS, brief=True))
    assert "1 wrong (fast), 1 saved, 2 open (busy, dry)" in brief
    assert "It falls." not in brief


def test_answers_cut_a_long_answer_between_words() -> None:
    for answer, words in (
        ("a. each step also uses the gradients of all earlier batches", "a. each step also uses the …"),
        ("a. each step uses them, so all later ones", "a. each step uses them, so …"),
        ("x" * 40, "x" * 28 + " …"),
        ("a. exactly thirty characters !", "a. exactly thirty characters !"),
    ):
        result = AnswerResult(id="why", kind="text", text="Why?", verdict="kept", answer=answer)
        assert f"why       {words}  " in text(answers(EXERCISE, [result])), answer
