"""The command `answer`: the questions at a terminal, and the arguments that it refuses."""

from __future__ import annotations

import pytest

from tests.learning import Learning


def test_answer_at_a_terminal_asks_every_open_question(learning: Learning) -> None:
    learning.record()
    # The text is right; 'fast' is no number, 'z' no option, so both are asked again. busy is left open; then Ctrl-D.
    reply = learning.types("answer", "1.1", typing="It falls.\nyes\nfast\n1.9\n\nz\nb\n")
    assert "'fast' is not a number" in reply.err
    assert "'z' is not one of a, b, c" in reply.err
    assert "2 right" in reply.out
    assert "b. in the sea" in reply.out
    assert "self-reviewed, counts 50 %" in reply.out
    assert reply.out.count("All rivers run into the sea.") == 1, "an explanation is shown once"
    result = learning.types("answer", "1.1", typing="9\n\n", code=5)
    assert result.out.startswith("3 of 5 · busy"), "the first open question"
    assert "5 questions, 2 to answer" in result.err
    result = learning.types("answer", "1.1", typing="82\n70\n")
    assert "Your answer so far: 9" in result.out, "a wrong answer with an attempt left is asked again"
    assert "where does it end" not in result.out.lower()
    assert learning.types("answer", "1.1", typing="").out.startswith("simulated nodes"), "nothing is asked"
    learning.types("answer", "1.1", "--set", "why=Rain.")
    assert learning.types("answer", "1.1", typing="no\n").out.startswith("1 of 1 · 1.1 why"), "a text without a review"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["answer", "1.1"], 3, "the questions of 1.1 are about your own run, but no run has succeeded yet"),
        (["answer", "1.2"], 2, "1.2 has no questions"),
        (["answer", "1.9"], 2, "there is no exercise '1.9'"),
    ],
)
def test_answer_without_a_run_or_questions_is_refused(learning: Learning, words: list[str], code: int, message: str) -> None:
    assert message in learning.types(*words, code=code).err


def test_answer_with_wrong_arguments_names_them(learning: Learning) -> None:
    record, second_record = learning.record(), learning.record("1.2")
    lost_run = learning.record(state="failed")
    for words, message in (
        (["--set", "speedupp=2"], "there is no question 'speedupp'. Did you mean speedup?"),
        (["--set", "speedup"], "--set speedup: not of the form name=value"),
        (["--set", "where=b", "--set", " where=c"], "--set where was typed twice: b and c"),
        (["--set", "why=It \udcff falls"], "the answer to 1.1 why: it is not text in UTF-8"),
        (["--set", "speedup=fast"], "the answer to 1.1 speedup: 'fast' is not a number"),
        (["--run", second_record.id], f"run {second_record.id} is a run of 1.2, not of 1.1"),
        (["--run", lost_run.id], f"run {lost_run.id} did not succeed"),
        (["--run", "zzz"], "there is no run 'zzz'"),
        (["--file", "/nowhere.yaml"], "/nowhere.yaml cannot be read"),
        ([], "there is no terminal, and no answers were typed"),
    ):
        assert message in learning.types("answer", "1.1", *words, code=2).err
    assert record.id in learning.types("answer", "1.1", "--set", "speedup=2", code=5).out
