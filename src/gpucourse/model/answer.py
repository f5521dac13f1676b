"""Answers to the questions of an exercise: the learner's text, and the credit for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

AnswerVerdict = Literal["passed", "failed", "error", "not_measured", "kept", "open"]


@dataclass(frozen=True, kw_only=True)
class AnswerResult:
    """One question and its answer.

    `verdict`: one of six words. `passed` and `failed`: the answer was compared with the key, or with the learner's own run.
    `error`: the run does not contain the values that the question needs. `not_measured`: the question needs a GPU. `kept`: the
    answer is free text. `open`: there is no answer yet.
    `share`: the credit. For free text, it is the judged quality from 0 to 1. For other answers, it falls with each attempt, and
    is below 0 for a choice that stays wrong.
    `final`: no further attempt counts.
    `said`: the sentence that the learner sees.
    `look_for`: what a good text says.
    `self_judged`: only the learner judged this text, so it earns at most half.
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
    """A prediction and the run's measurement, both as text with units; `measurement` is empty if nothing was measured.

    `share`: the credit of a first prediction. It is below 0 for a wrong choice, so that guessing earns nothing on average.
    `ratio`: the predicted number divided by the measured number, if both are above 0.
    `difference`: how far apart the two are, or why they could not be compared.
    """

    id: str
    text: str
    verdict: AnswerVerdict
    prediction: str
    measurement: str = ""
    difference: str = ""
    share: float | None = None
    ratio: float | None = None
    explanation: str = ""

    @property
    def deviation(self) -> str:
        """Return how far off a predicted number is, such as `off by +3 %`, or whether a choice is right."""
        return f"off by {self.difference}" if self.difference[:1] in "+-0123456789" else self.difference


@dataclass(frozen=True, kw_only=True)
class AnswerAttempt:
    """One attempt at a question: the `answer` as it was shown, whether it was `right` at that time, and the `run` that the
    question is about.
    """

    question: str
    answer: str
    right: bool
    at: str
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class AnswerAttempts:
    """`attempts.json`: every answer to the choice and number questions of one exercise, oldest first."""

    version: int = 1
    exercise: str
    attempts: tuple[AnswerAttempt, ...] = field(default_factory=tuple)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One person's judgement of one free text. `answer_sha256` is the digest of the text that was judged."""

    question: str
    share: float
    by: str
    at: str
    comment: str = ""
    answer_sha256: str


@dataclass(frozen=True, kw_only=True)
class Review:
    """All judgements of the answers to one exercise, oldest first. The newest judgement of the current text counts."""

    version: int = 1
    exercise: str
    judgements: tuple[Judgement, ...] = field(default_factory=tuple)
