"""Answers: numbers with their units against what a run recorded, choices by letter or words, free text stored."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from gpucourse.grading.answers import fingerprint, judge, letter, number
from gpucourse.model.answer import AnswerResult, Judgement
from gpucourse.model.questions import Question

METRICS = {"speedup": 1.9, "rows": [{"busy": 78}, {"busy": 96}], "none": None, "nan": "nan", "count": 24}


def make_question(**keys: Any) -> Question:
    return Question.model_validate({"id": "q", "text": "How?", "kind": "numeric", "explanation": "So.", **keys})


def judge_answer(answer: Any, *, on_gpu: bool = False, run: bool = True, wrong_before: int = 0, **keys: Any) -> AnswerResult:
    evidence = {"metrics": METRICS} if run else None
    return judge(make_question(**keys), answer, evidence, on_gpu=on_gpu, wrong_before=wrong_before)


BUSY: dict[str, Any] = {"low": "min(metrics.rows.busy)", "high": "max(metrics.rows.busy)", "unit": "%"}


@pytest.mark.parametrize(
    ("keys", "answer", "verdict", "message"),
    [
        ({"value": "metrics.speedup"}, "1.9", "passed", "you said 1.9; your run shows 1.9"),
        ({"value": "metrics.speedup"}, "1.8", "failed", "you said 1.8; your run shows 1.9"),
        ({"value": "metrics.speedup", "tolerance": 0.1}, "2.01", "failed", "(± 0.1)"),
        ({"value": "metrics.speedup", "tolerance_percent": 10}, "2.2", "failed", "(± 10 %)"),
        (BUSY, "45%", "failed", "you said 45 %; your run shows 78 to 96 %"),
        (BUSY, "78", "passed", "78 to 96 %"),
        (BUSY, "96 percent", "passed", "78 to 96 %"),
        (BUSY | {"tolerance": 2}, "98", "passed", "78 to 96 %"),
        ({"value": 24}, "24", "passed", "right"),
        ({"value": "count(metrics.rows)"}, "2", "passed", "2"),
        ({"value": "metrics.none"}, "2", "error", "your run did not record metrics.none"),
        ({"value": "metrics.gone"}, "2", "error", "metrics.gone is missing"),
        ({"value": "metrics.rows.busy"}, "2", "error", "metrics.rows.busy is not a single number"),
        ({"value": "metrics.nan"}, "2", "error", "not a finite number"),
        ({"value": "metrics.speedup", "evidence": "gpu"}, "2", "not_measured", "needs a GPU"),
        ({"value": "metrics.speedup"}, "", "open", ""),
        ({"value": "metrics.speedup"}, None, "open", ""),
    ],
)
def test_judge_numbers(keys: dict[str, Any], answer: Any, verdict: str, message: str) -> None:
    result = judge_answer(answer, wrong_before=1, **keys)
    assert result.verdict == verdict
    assert message in result.said
    assert (result.explanation == "So.") == (verdict in {"passed", "failed"}), "a second wrong answer is final"


def test_judge_of_a_first_wrong_number_shows_only_the_tolerance() -> None:
    result = judge_answer("45 %", **BUSY, tolerance=2)
    assert (result.verdict, result.share, result.final) == ("failed", 0, False)
    assert result.said == "45 % is incorrect (± 2); one more attempt counts"
    assert result.explanation == ""


@pytest.mark.parametrize(("wrong_count", "share"), [(0, 1.0), (1, 0.5), (2, 0.0), (9, 0.0)])
def test_judge_of_a_right_number_counts_less_for_each_attempt(wrong_count: int, share: float) -> None:
    result = judge_answer("1.9", value="metrics.speedup", wrong_before=wrong_count)
    assert (result.verdict, result.share) == ("passed", share)


@pytest.mark.parametrize("options", [2, 3, 5])
@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_judge_awards_nothing_for_guessing_a_choice(options: int, attempts: int) -> None:
    question = make_question(kind="choice", options=[str(number) for number in range(options)], key="a")
    shares = []
    for order in itertools.permutations(question.choices, min(attempts, options)):
        right_index = next((at for at, choice in enumerate(order) if choice == "a"), len(order))
        last = order[right_index] if right_index < len(order) else order[-1]
        wrong_count = right_index if right_index < len(order) else right_index - 1
        shares.append(judge(question, last, None, on_gpu=False, wrong_before=wrong_count).share or 0.0)
    assert sum(shares) / len(shares) <= 1e-9


def test_judge_without_a_run_compares_only_fixed_values() -> None:
    assert judge_answer("1.9", on_gpu=True, value="metrics.speedup", evidence="gpu").verdict == "passed"
    assert judge_answer("1.9", run=False, value="metrics.speedup").said == "there is no run to compare it with"
    assert judge_answer("24", run=False, value=24).verdict == "passed"


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("45", "%", 45), ("45%", "%", 45), (" 45 % ", "%", 45), ("1,234.5 ms", "ms", 1234.5), ("-3e-2", "", -0.03),
        (".5", "", 0.5), ("2x", "times", 2), ("2 times", "x", 2), (7, "s", 7), ("1_0".replace("_", ""), "", 10),
        ("$0.18", "dollars", 0.18), ("$ 1,200", "dollars", 1200), ("0.18 USD", "dollars", 0.18), ("71 C", "°C", 71),
        ("42 TFLOPS", "TFLOP/s", 42), ("70 watts", "W", 70), ("1.5 ×", "times", 1.5),
    ],
)  # fmt: skip
def test_number_reads_units_and_separators(text: Any, unit: str, value: float) -> None:
    assert number(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        ("many", "%", "'many' is not a number"),
        ("78 to 96", "%", "ends in 'to 96'; the question asks for %"),
        ("45 ms", "s", "ends in 'ms'; the question asks for s"),
        ("45 %", "", "a number without a unit"),
        ("0,0989", "s", "'0,0989' has a comma that does not separate thousands: write decimals with a point"),
        ("1,23", "", "'1,23' has a comma that does not separate thousands: write decimals with a point"),
        ("$5", "W", "'$5' is not a number"),
        ("1e999", "", "not a finite number"),
        (True, "", "'True' is not a number"),
        ("__import__('os')", "", "is not a number"),
    ],
)
def test_number_refuses_anything_but_a_number(text: Any, unit: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        number(text, unit)
    assert reason in str(caught.value)


CHOICE: dict[str, Any] = {"kind": "choice", "options": ["in a lake", "In the sea."], "key": "b"}


@pytest.mark.parametrize(("answer", "verdict"), [("b", "passed"), ("B)", "passed"), ("in the sea", "passed"), ("a", "failed")])
def test_judge_choices(answer: str, verdict: str) -> None:
    result = judge_answer(answer, **CHOICE | {"options": [*CHOICE["options"], "nowhere"]})
    assert (result.verdict, result.explanation) == (verdict, "So." if verdict == "passed" else "")
    assert "b" not in result.said.split(), "the letter of the right one is not told"
    final = judge_answer("a", **CHOICE)
    assert (final.final, final.share, final.explanation) == (True, -1, "So."), "of two there is one attempt"


@pytest.mark.parametrize("answer", ["c", "", "the moon", 3])
def test_letter_refuses_anything_but_an_option(answer: Any) -> None:
    with pytest.raises(ValueError, match="is not one of a, b"):
        letter(make_question(**CHOICE), answer)


def test_judge_of_free_text_waits_for_a_judgement_of_the_same_words() -> None:
    question = Question.model_validate({"id": "q", "text": "Why?"})
    words = "It falls.\n  Always."
    assert fingerprint(words) == fingerprint("It falls. Always.\n") != fingerprint("It falls!")
    waiting = judge(question, words, None, on_gpu=False)
    assert (waiting.verdict, waiting.share) == ("kept", None)
    judgement = Judgement(question="q", share=0.5, by="Ada", at="2026-11-21T10:00:00", comment="half", answer_sha256="x")
    result = judge(question, words, None, on_gpu=False, judgement=judgement)
    assert (result.verdict, result.share) == ("kept", 0.5)
    assert result.said == "Ada judged it 50 % good, 2026-11-21T10:00:00: half"
    self_result = judge(question, words, None, on_gpu=False, judgement=judgement, self_judged=True)
    assert (self_result.verdict, self_result.share, self_result.self_judged) == ("kept", 0.25, True)
    assert self_result.said == "self-reviewed as 50 % good; counts 25 % until an instructor's review: half"


@pytest.mark.parametrize(
    ("share", "credit"), [(1.0, 0.5), (0.0, 0.0), (1e9, 0.0), (-3.0, 0.0), (math.inf, 0.0), (math.nan, 0.0)]
)
def test_judge_of_a_self_review_is_at_most_half(share: float, credit: float) -> None:
    question = Question.model_validate({"id": "q", "text": "Why?"})
    judgement = Judgement(question="q", share=share, by="Ada", at="", answer_sha256="x")
    assert judge(question, "It falls.", None, on_gpu=False, judgement=judgement, self_judged=True).share == credit
