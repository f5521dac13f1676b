"""`answer`: at the terminal, as options, or in a sheet; which answers are stored, and which are refused."""

from __future__ import annotations

from gpucourse.learning import answer
from tests.learning import METRICS, Learning

SHEET = "deliverables/1.1/answers.yaml"


def test_judge_answer_of_set_judges_and_stores_each_answer(learning: Learning) -> None:
    record = learning.record()
    result = learning.types("answer", "1.1", "--set", "speedup=1.92", "--set", "where=b", "--set", "why=It falls.")
    assert "you said 1.92 times; your run shows 1.9 times" in result.out
    assert "All rivers run into the sea." in result.out
    assert "• why: saved, not reviewed" in result.out
    assert "5 questions: 2 right, 1 saved, 2 open (busy, power)" in result.out
    text = (learning.workspace / SHEET).read_text()
    assert f"run: {record.id}" in text
    assert "  # Where does it end?\n  #   a. in a lake\n" in text
    document = learning.types("answer", "1.1", "--json").document
    assert {answer["id"]: answer["verdict"] for answer in document["answers"]} == {
        "why": "kept", "speedup": "passed", "busy": "open", "where": "passed", "power": "open"
    }  # fmt: skip


def test_answer_with_a_wrong_number_shows_the_recorded_one_after_the_last_attempt(learning: Learning) -> None:
    learning.record()
    result = learning.types("answer", "1.1", "--set", "busy=44", code=5)
    assert "44 % is incorrect; one more attempt counts" in result.out
    result = learning.types("answer", "1.1", "--set", "busy=45%", code=5)
    assert "you said 45 %; your run shows 78 to 96 %" in result.out
    assert "1 of 5 answers is wrong: busy" in result.err
    result = learning.types("answer", "1.1", "--set", "power=70", code=5)
    assert result.out.count("not measured: needs a GPU") == 1
    assert "busy: " not in result.out, "only the answer that was typed"
    assert "busy" in learning.types("answer", "1.1", code=5).out


def test_review_asks_about_each_text_and_counts_half(learning: Learning) -> None:
    learning.record()
    assert "1.1 has no free text to review" in learning.types("answer", "1.1", "--review", code=2).err
    assert "A good answer says" not in learning.types("answer", "1.1", "--set", "where=b").out
    assert "A good answer says: it falls" in learning.types("answer", "1.1", "--set", "why=It falls.").out
    message = learning.types("answer", "1.1", "--review", code=2).err
    assert "gpucourse answer 1.1 --review --set why=yes" in message
    assert (
        "'fine' is not one of yes, partly, no" in learning.types("answer", "1.1", "--review", "--set", "why=fine", code=2).err
    )
    assert "is not free text" in learning.types("answer", "1.1", "--review", "--set", "where=yes", code=2).err
    result = learning.types("answer", "1.1", "--review", typing="perhaps\np\n")
    assert "your answer    It falls." in result.out
    assert "a good answer  it falls" in result.out
    assert "self-reviewed, counts 25 %" in result.out
    document = learning.types("answer", "1.1", "--review", "--set", "why=yes", "--json").document
    assert (document["answers"][0]["share"], document["answers"][0]["self_judged"]) == (0.5, True)
    assert learning.read_points()["understanding"] == 3.75
    learning.types("answer", "1.1", "--set", "why=It falls down.")
    assert learning.read_points()["understanding"] == 2.5, "another text was not reviewed"


def test_answer_about_the_run_that_the_sheet_names_is_compared_with_it(learning: Learning) -> None:
    first = learning.record()
    learning.types("answer", "1.1", "--set", "speedup=1.9")
    learning.record(metrics={**METRICS, "speedup": 3.0})
    assert "right" in learning.types("answer", "1.1").out, "the sheet names the run"
    learning.types("answer", "1.1", "--set", "why=It falls.")
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--run", first.id)
    learning.types("answer", "1.1", "--set", "speedup=4", code=5)
    assert "shows 3 times" in learning.types("answer", "1.1", "--set", "speedup=2", code=5).out


def test_begin_and_take_in_two_terminals_keep_both_answers(learning: Learning) -> None:
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
