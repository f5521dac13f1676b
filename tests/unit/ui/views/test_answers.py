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
    output = text(answers(EXERCISE, RESULTS, run="otter"))
    for words in (
        "3.1 questions, run otter", "•  why", "✗  fast", "2; it is 3", "Why\n  fast  Count.",
        "A good answer says\n  why  gravity", "4 questions: 1 not right, 1 saved, 2 open",
        "Still open: busy. Answer: gpucourse answer 3.1", "dry is answered by a run: gpucourse run 3.1 --expect-red CHECK",
    ):  # fmt: skip
        assert words in output, words
    assert "Answer: gpucourse" not in text(answers(EXERCISE, RESULTS, next_step="gpucourse answer 3.1"))
