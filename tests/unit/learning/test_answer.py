"""`answer`: asked at the terminal, typed, or in a sheet; what was kept, and every way to get it wrong."""

from __future__ import annotations

import pytest

from gpucourse.learning import answer
from tests.learning import METRICS, Learning

SHEET = "deliverables/1.1/answers.yaml"


def test_answer_with_set_judges_and_keeps_each_answer(learning: Learning) -> None:
    record = learning.record()
    said = learning.types("answer", "1.1", "--set", "speedup=1.92", "--set", "where=b", "--set", "why=It falls.")
    assert "you said 1.92 times; your recording shows 1.9 times" in said.out
    assert "All rivers run into the sea." in said.out
    assert "saved; needs review" in said.out
    assert "Still open: busy, power" in said.out
    text = (learning.workspace / SHEET).read_text()
    assert f"run: {record.id}" in text
    assert "  # Where does it end?\n  #   a. in a lake\n" in text
    document = learning.types("answer", "1.1", "--json").document
    assert {answer["id"]: answer["verdict"] for answer in document["answers"]} == {
        "why": "kept", "speedup": "passed", "busy": "open", "where": "passed", "power": "open"
    }  # fmt: skip


def test_answer_with_a_wrong_number_shows_the_recorded_one_after_the_last_attempt(learning: Learning) -> None:
    learning.record()
    said = learning.types("answer", "1.1", "--set", "busy=44", code=5)
    assert "44 % is incorrect; one more attempt counts" in said.out
    said = learning.types("answer", "1.1", "--set", "busy=45%", code=5)
    assert "you said 45 %; your recording shows 78 to 96 %" in said.out
    assert "1 of 5 answers are not right: busy" in said.err
    assert learning.types("answer", "1.1", "--set", "power=70", "--set", "busy=80").out.count("not measured: needs a GPU") == 1


def test_answer_at_a_terminal_asks_every_open_question(learning: Learning) -> None:
    learning.record()
    typing = "It falls.\nfast\n1.9\n\nz\nb\n"  # 'fast' is no number, 'z' no option: asked again; busy left open; then Ctrl-D
    said = learning.types("answer", "1.1", typing=typing)
    assert "'fast' is not a number" in said.err
    assert "'z' is not one of a, b, c" in said.err
    assert "2 right" in said.out
    assert "b. in the sea" in said.out
    again = learning.types("answer", "1.1", typing="82\n\n")
    assert again.out.startswith("3 of 5 busy"), "the first open question"
    assert "Question 3 is the first one to answer; --set NAME=ANSWER changes an earlier answer." in again.err
    assert "Your answer so far: b" in again.out
    assert "3 right" in again.out
    learning.types("answer", "1.1", "--set", "power=70")
    assert learning.types("answer", "1.1", typing="").out.startswith("1 of 5 why"), "nothing is open: from the first question"


def test_answer_compares_with_the_run_that_the_sheet_names(learning: Learning) -> None:
    first = learning.record()
    learning.types("answer", "1.1", "--set", "speedup=1.9")
    learning.record(metrics={**METRICS, "speedup": 3.0})
    assert "right" in learning.types("answer", "1.1").out, "the sheet names the run"
    learning.types("answer", "1.1", "--set", "why=It falls.")
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--run", first.id)
    learning.types("answer", "1.1", "--set", "speedup=4", code=5)
    assert "shows 3 times" in learning.types("answer", "1.1", "--set", "speedup=2", code=5).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["answer", "1.1"], 3, "the questions of 1.1 are about your own run, and none has succeeded yet"),
        (["answer", "1.2"], 2, "1.2 has no questions"),
        (["answer", "1.9"], 2, "there is no exercise '1.9'"),
    ],
)
def test_answer_before_the_first_run_is_refused(learning: Learning, words: list[str], code: int, said: str) -> None:
    assert said in learning.types(*words, code=code).err


def test_answer_with_wrong_words_names_them(learning: Learning) -> None:
    record, other = learning.record(), learning.record("1.2")
    lost = learning.record(state="failed")
    for words, said in (
        (["--set", "speedupp=2"], "there is no question 'speedupp'. Did you mean speedup?"),
        (["--set", "speedup"], "--set speedup: not of the form name=value"),
        (["--set", "where=b", "--set", " where=c"], "--set where was given twice: b and c"),
        (["--set", "why=It \udcff falls"], "the answer to 1.1 why: it is not text in UTF-8"),
        (["--set", "speedup=fast"], "the answer to 1.1 speedup: 'fast' is not a number"),
        (["--run", other.id], f"run {other.id} is a run of 1.2, not of 1.1"),
        (["--run", lost.id], f"run {lost.id} did not succeed"),
        (["--run", "zzz"], "there is no run 'zzz'"),
        (["--file", "/nowhere.yaml"], "/nowhere.yaml cannot be read"),
        ([], "not a terminal, and no answers were given"),
    ):
        assert said in learning.types("answer", "1.1", *words, code=2).err
    assert record.id in learning.types("answer", "1.1", "--set", "speedup=2", code=5).out


def test_answer_in_two_terminals_keeps_both_answers(learning: Learning) -> None:
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
