"""Answers, compared with the learner's own run. Numbers are read with their unit; nothing is evaluated.

The result of an answer is one of the four results of a check, `kept` (free text that needs a review), or `open` (no answer).

The credit depends on earlier attempts, so that trying every option earns nothing. A choice of n options earns 1 at the first
attempt, and 2 / (n - 1) less for each wrong attempt. If it stays wrong, each wrong attempt costs 1 / (n - 1). The mean over
all ways to guess is then 0, for any number of attempts. A number earns 1 at the first attempt and 0.5 at the second. After two
wrong attempts, the answer is final.

Free text earns what a reviewer awards. Until then it earns SELF_REVIEW_SHARE of what the learner awarded.

A prediction is compared with the measurement; its result says how far off it was. Only the first prediction of a choice
counts, because the run then shows the right option. A right prediction earns 1. A wrong one costs r / (n - r), if r of the n
options are right.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpucourse.grading.checks import format_value
from gpucourse.grading.values import Unreadable, read
from gpucourse.model.answer import AnswerResult, AnswerVerdict, Judgement, PredictionResult
from gpucourse.model.fields import Scalar, is_number, is_utf8
from gpucourse.model.questions import Prediction, Question

_NUMBER = re.compile(r"([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(.*)", re.DOTALL)
_SAME = {
    "percent": "%", "times": "x", "$": "dollars", "usd": "dollars", "dollar": "dollars", "c": "°c", "degrees": "°c",
    "watts": "w", "tflops": "tflop/s", "gflops": "gflop/s", "sec": "s", "seconds": "s",
    "tok/s": "tokens/s", "tokenspersecond": "tokens/s",
}  # fmt: skip
"""Other spellings of units, in lower case without spaces."""
_NEEDS_GPU = "not measured: needs a GPU"
_GRAIN = 1e-9  # relative: the rounding of binary fractions does not count
MAX_ATTEMPTS = 2
SECOND = 0.5
"""The credit for a right number at the second attempt."""
SELF_REVIEW_SHARE = 0.5
"""The highest credit for a text that only the learner has judged."""


def judge(
    question: Question,
    answer: Scalar | None,
    evidence: Mapping[str, object] | None,
    *,
    on_gpu: bool,
    judgement: Judgement | None = None,
    self_judged: bool = False,
    wrong_before: int = 0,
) -> AnswerResult:
    """Return the result for an answer.

    `evidence`: the evidence of the run that the question is about. It is None without a run.
    `self_judged`: the learner made the judgement, so it earns at most SELF_REVIEW_SHARE.
    `wrong_before`: the number of earlier wrong answers to the question.

    Raises ValueError, with the reason, if the answer does not fit the kind of question.
    """
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return _result(question, "open", None)
    if isinstance(answer, str) and not is_utf8(answer):
        raise ValueError("it is not text in UTF-8")
    if question.kind == "mutation":
        raise ValueError(f"to answer it, edit {question.edit} and run the exercise")
    if question.kind == "choice":
        return _choice(question, answer, wrong_before)
    if question.kind == "numeric":
        return _number(question, answer, evidence, wrong_before, on_gpu=on_gpu)
    words = str(answer)
    if judgement is None:
        return _result(question, "kept", words, "saved, not reviewed")
    comment = f": {judgement.comment}" if judgement.comment else ""
    if self_judged:
        quality = judgement.share if 0 <= judgement.share <= 1 else 0.0  # a learner can write anything into the file
        share = quality * SELF_REVIEW_SHARE
        text = f"self-reviewed as {100 * quality:.0f} % good; counts {100 * share:.0f} % until an instructor's review{comment}"
        return replace(_result(question, "kept", words, text, share=share), self_judged=True)
    text = f"{judgement.by} judged it {100 * judgement.share:.0f} % good, {judgement.at}{comment}"
    return _result(question, "kept", words, text, share=judgement.share)


def fingerprint(answer: Scalar) -> str:
    """Return the SHA-256 of an answer's words. A judgement is valid only while these do not change; white space does not
    count."""
    return hashlib.sha256(" ".join(str(answer).split()).encode()).hexdigest()


def letter(question: Question, answer: Scalar) -> str:
    """Return the letter of the option that the answer names, by letter or by text. Raises ValueError if there is no such
    option."""
    word = str(answer).strip().rstrip(".)").lower()
    for name, text in question.choices.items():
        if word in {name, text.lower().rstrip(".)")}:
            return name
    raise ValueError(f"{str(answer)[:40]!r} is not one of {', '.join(question.choices)}")


def number(answer: Scalar, unit: str) -> float:
    """Return the number in an answer: `45`, `45%`, `1,234.5 ms`, `$0.18`. Raises ValueError with the reason."""
    text = str(answer).strip()
    if text.startswith("$") and _plain(unit) == "dollars":
        text = text[1:].lstrip()
    match = _NUMBER.fullmatch(text)
    if not match or not any(character.isdigit() for character in match[1]):
        raise ValueError(f"{text[:40]!r} is not a number")
    value, unit_text = float(match[1].replace(",", "")), match[2].strip()
    if not math.isfinite(value):
        raise ValueError(f"{answer} is not a finite number")
    if "," in text and re.match(r",?\d", unit_text):
        raise ValueError(f"{text[:40]!r} has a comma that does not separate thousands: write decimals with a point, 0.5")
    if unit_text and _plain(unit_text) != _plain(unit):
        complaint = f"the question asks for {unit}" if unit else "the question asks for a number without a unit"
        raise ValueError(f"{text[:40]!r} ends in {unit_text[:20]!r}; {complaint}")
    return value


def _choice(question: Question, answer: Scalar, wrong_before: int) -> AnswerResult:
    chosen_letter = letter(question, answer)
    is_right = chosen_letter == question.key
    text = f"{chosen_letter}. {question.choices[chosen_letter]}"
    return _weigh(question, text, "right" if is_right else "incorrect", wrong_before, is_right=is_right)


def _weigh(question: Question, answer: str, text: str, wrong_before: int, *, is_right: bool) -> AnswerResult:
    """Return the result for a right or wrong answer after `wrong_before` wrong answers."""
    wrong_count = wrong_before if is_right else wrong_before + 1
    final = wrong_count >= count_attempts(question)
    share = compute_credit(question, wrong_count, is_right=is_right)
    counts = f"counts {100 * share:.0f} %" + (f", after {wrong_count} wrong" if wrong_count else "")
    if not is_right:
        counts = f"final, {counts}" if final else "one more attempt counts"
    text = text if is_right and not wrong_count else f"{text}; {counts}"
    result = _result(question, "passed" if is_right else "failed", answer, text, share=share)
    return replace(result, final=final, explanation=result.explanation if is_right or final else "")


def _number(
    question: Question, answer: Scalar, evidence: Mapping[str, object] | None, wrong_before: int, *, on_gpu: bool
) -> AnswerResult:
    value = number(answer, question.unit)
    text = format_value(shorten(value), question.unit)
    if question.evidence == "gpu" and not on_gpu:
        return _result(question, "not_measured", text, _NEEDS_GPU)
    try:
        low, high = _read_finite_ends(question, evidence)
    except Unreadable as error:
        return _result(question, "error", text, str(error))
    room = max(question.tolerance, question.tolerance_percent / 100 * max(abs(low), abs(high)))
    grain = _GRAIN * max(abs(low), abs(high), abs(value))
    is_right = low - room - grain <= value <= high + room + grain
    is_shown = is_right or wrong_before + 1 >= count_attempts(question)
    return _weigh(
        question,
        text,
        _explain(question, text, low, high, is_right=is_right, is_shown=is_shown),
        wrong_before,
        is_right=is_right,
    )


def read_ends(question: Question, evidence: Mapping[str, object] | None) -> tuple[float, float]:
    """Return the lowest and the highest right answer, without the tolerance. They are equal if only one value is right.

    Raises Unreadable, with the reason, if the evidence does not contain them.
    """
    if question.reads and evidence is None:
        raise Unreadable("there is no run to compare it with")
    ends = [question.value] if question.value is not None else [question.low, question.high]
    values = [read(end, evidence or {}) if isinstance(end, str) else end for end in ends]
    for path, value in zip(ends, values, strict=True):
        if not is_number(value):
            raise Unreadable(f"your run did not record {path}" if value is None else f"{path} is not a single number")
    numbers = [float(value) for value in values]  # type: ignore[arg-type]
    return min(numbers), max(numbers)


def _read_finite_ends(question: Question, evidence: Mapping[str, object] | None) -> tuple[float, float]:
    """Return the ends of `read_ends`. Also raises Unreadable if one of them is not a finite number."""
    ends = read_ends(question, evidence)
    if not all(map(math.isfinite, ends)):
        raise Unreadable("your run recorded a value that is not a finite number")
    return ends


def _explain(question: Question, text: str, low: float, high: float, *, is_right: bool, is_shown: bool) -> str:
    """Return the sentence that the learner sees. If the answer is right or final (`is_shown`), the sentence shows the run's
    value, as in `you said 45 %; your run shows 78 to 96 %`. A right value that does not depend on the run is never shown."""
    room = f" (± {question.tolerance:g})" if question.tolerance else ""
    room = f" (± {question.tolerance_percent:g} %)" if question.tolerance_percent else room
    if not question.reads or not is_shown:
        return "right" if is_right else f"{text} is incorrect{room}"
    ends = format_value(shorten(low), question.unit)
    if high != low:
        ends = f"{format_value(shorten(low), '')} to {format_value(shorten(high), question.unit)}"
    return f"you said {text}; your run shows {ends}" + ("" if is_right else room)


def _result(
    question: Question, verdict: AnswerVerdict, answer: str | None, text: str = "", *, share: float | None = None
) -> AnswerResult:
    return AnswerResult(
        id=question.id,
        kind=question.kind,
        text=question.text,
        verdict=verdict,
        answer=answer,
        said=text,
        explanation="" if verdict in {"open", "error", "not_measured"} else question.explanation or "",
        look_for=(question.look_for or "") if verdict == "kept" else "",
        evidence=question.evidence,
        share=share,
    )


def shorten(value: float) -> float:
    """Return a whole number below 1e15 as an int. Round any other number to four digits, which are enough for a reader."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.4g}")


def _plain(unit: str) -> str:
    words = unit.lower().replace(" ", "").replace("µ", "u").replace("×", "x")
    return _SAME.get(words, words)


def count_attempts(question: Question) -> int:
    """Return how many attempts a question allows. A choice of two options allows one, because a wrong attempt reveals the
    answer."""
    return min(MAX_ATTEMPTS, len(question.options) - 1) if question.kind == "choice" else MAX_ATTEMPTS


def compute_credit(question: Question, wrong_count: int, *, is_right: bool) -> float:
    """Return the credit for an answer, from -1 to 1. `wrong_count` counts the wrong attempts, including this one if it is
    wrong."""
    wrong_count = min(wrong_count, count_attempts(question))
    final = wrong_count == count_attempts(question)
    if question.kind != "choice":
        return 0.0 if final or not is_right else SECOND if wrong_count else 1.0
    step = 1 / (len(question.options) - 1)
    return 1.0 - 2 * wrong_count * step if is_right and not final else -wrong_count * step


def compare(prediction: Prediction, answer: str, evidence: Mapping[str, object] | None, *, on_gpu: bool) -> PredictionResult:
    """Return the comparison of the prediction `answer` with the measurement of a run.

    `evidence` is None if nothing was measured.

    Raises ValueError, with the reason, if the answer does not fit the kind of prediction.
    """
    if prediction.kind == "choice":
        return _compare_choice(prediction, answer, evidence, on_gpu=on_gpu)
    result = judge(prediction, answer, evidence, on_gpu=on_gpu)
    measurement, difference, ratio = "", result.said, None
    if result.verdict in {"passed", "failed"}:
        measurement, difference, ratio = _compare_numbers(prediction, answer, evidence)
    return _make_prediction_result(
        prediction, result.verdict, result.answer or "", measurement, difference, share=result.share, ratio=ratio
    )


def _compare_choice(
    prediction: Prediction, answer: str, evidence: Mapping[str, object] | None, *, on_gpu: bool
) -> PredictionResult:
    """Return the comparison of a predicted option with the right options: those whose range contains the measured number,
    or the option in `key`."""
    chosen_letter = letter(prediction, answer)
    text, measurement = f"{chosen_letter}. {prediction.choices[chosen_letter]}", ""
    right_letters: Sequence[str] = (prediction.key or "",)
    if prediction.ranges:
        if prediction.evidence == "gpu" and not on_gpu:
            return _make_prediction_result(prediction, "not_measured", text, "", _NEEDS_GPU)
        try:
            value = _read_finite_ends(prediction, evidence)[0]
        except Unreadable as error:
            return _make_prediction_result(prediction, "error", text, "", str(error))
        measurement = format_value(shorten(value), prediction.unit)
        right_letters = prediction.find_right_letters(value)
        if not right_letters:
            return _make_prediction_result(prediction, "error", text, measurement, "not judged: no option covers this value")
    elif evidence is not None:
        measurement = f"{right_letters[0]}. {prediction.choices[right_letters[0]]}"
    is_right = chosen_letter in right_letters
    correction = f"{' or '.join(right_letters)} is right" if prediction.ranges else "not what was measured"
    return _make_prediction_result(
        prediction,
        "passed" if is_right else "failed",
        text,
        measurement,
        "right" if is_right else correction,
        share=1.0 if is_right else -len(right_letters) / (len(prediction.options) - len(right_letters)),
    )


def _make_prediction_result(
    prediction: Prediction,
    verdict: AnswerVerdict,
    answer: str,
    measurement: str,
    difference: str,
    *,
    share: float | None = None,
    ratio: float | None = None,
) -> PredictionResult:
    return PredictionResult(
        id=prediction.id,
        text=prediction.text,
        verdict=verdict,
        prediction=answer,
        measurement=measurement,
        difference=difference,
        share=share,
        ratio=ratio,
        explanation=(prediction.explanation or "") if verdict in {"passed", "failed"} else "",
    )


def _compare_numbers(
    prediction: Prediction, answer: str, evidence: Mapping[str, object] | None
) -> tuple[str, str, float | None]:
    """Return the measurement, how far off the prediction is, and the predicted number divided by the measured one."""
    value, (low, high) = number(answer, prediction.unit), read_ends(prediction, evidence)
    nearest = min(max(value, low), high)
    measurement = format_value(shorten(high), prediction.unit)
    if low != high:
        measurement = f"{format_value(shorten(low), '')} to {measurement}"
    ratio = value / nearest if value > 0 and nearest > 0 and math.isfinite(value / nearest) else None
    if nearest == 0:  # a percentage of 0 is not defined
        return measurement, format_value(shorten(value), prediction.unit), ratio
    percent = (value - nearest) / abs(nearest) * 100
    return measurement, f"{percent:+,.3g} %" if percent else "0 %", ratio
