"""Answers to the questions of an exercise: as the learner wrote them, and how they count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

AnswerVerdict = Literal["passed", "failed", "error", "not_measured", "kept", "open"]


@dataclass(frozen=True, kw_only=True)
class AnswerResult:
    """One question and its answer.

    `passed` and `failed`: the answer was compared with the key, or with the recording of this learner's run. `error`: the run
    does not contain what the question reads. `not_measured`: it needs a GPU. `kept`: free text that waits for a reviewer, or
    was judged by one. `open`: no answer yet. `share` is the credit: for a judged text, its quality from 0 to 1; for other
    answers, less with each attempt, and below 0 for a choice that stays wrong. `final`: further attempts do not count. `said`
    is the sentence for the learner, `look_for` describes a good text. `self_judged`: the learner judged this text, which earns
    nothing.
    """

    id: str
    kind: str
    text: str
    verdict: AnswerVerdict
    answer: str | None = None
    said: str = ""
    explanation: str = ""
    evidence: str = "logic"
    share: float | None = None
    self_judged: bool = False
    final: bool = False
    look_for: str = ""


@dataclass(frozen=True, kw_only=True)
class PredictionResult:
    """A prediction and the run's measurement, both as text with units; `measurement` is empty if it was not measured.

    `ratio` is the predicted number divided by the measured number, if both are above 0; `difference` says by how much they
    differ, or why they could not be compared.
    """

    id: str
    text: str
    verdict: AnswerVerdict
    prediction: str
    measurement: str = ""
    difference: str = ""
    ratio: float | None = None
    explanation: str = ""


@dataclass(frozen=True, kw_only=True)
class AnswerAttempt:
    """One attempt at a question: `answer` is its text as it was shown, `right` the result at that time, `run` the run that the
    question refers to."""

    question: str
    answer: str
    right: bool
    at: str
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class AnswerAttempts:
    """`attempts.json`: every answer that was given to the choice and number questions of one exercise, oldest first."""

    version: int = 1
    exercise: str
    attempts: tuple[AnswerAttempt, ...] = field(default_factory=tuple)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A person's judgement on one free text. `answer_sha256` is the digest of exactly the text that was judged."""

    question: str
    share: float
    by: str
    at: str
    comment: str = ""
    answer_sha256: str


@dataclass(frozen=True, kw_only=True)
class Review:
    """Every judgement on the answers to one exercise, oldest first; the newest judgement of the current text counts."""

    version: int = 1
    exercise: str
    judgements: tuple[Judgement, ...] = field(default_factory=tuple)
