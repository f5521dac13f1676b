"""Points, and the evidence for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpucourse.model.answer import AnswerResult
from gpucourse.model.verdict import CheckResult, PartResult

Level = Literal["gpu", "logic", "none"]
NO_RUN = "no run yet"
"""The note of a piece if its exercise has no run that counts."""


@dataclass(frozen=True, kw_only=True)
class Signs:
    """The progress in an exercise: a good run, passed parts, and an answer to every question. A sign that the exercise does not
    require is None."""

    ran: bool
    yours: bool | None = None
    answered: bool | None = None

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to do."""
        return self.ran and self.yours is not False and self.answered is not False


@dataclass(frozen=True, kw_only=True)
class PartReview:
    """Facts about a handed-in part besides its verdict.

    `is_solution`: whether its code equals that of a solution of the course.
    `by_learner`: whether only the learner's computer reports that it passed, and no check of a run and no reviewer confirms it.
    `share`: its quality in a reviewer's judgement, from 0 to 1. It is None without a judgement.
    """

    is_solution: bool = False
    by_learner: bool = False
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class ExerciseEvidence:
    """The evidence of one exercise.

    `wanted` and `handed_in`: the required deliverables, and those that are present.
    `changed`: the run's files that were changed after it.
    `level`: whether the run used a GPU.
    `parts`: the learner's parts.
    `part_reviews`: further facts about the parts, by their ids.
    `prediction`: the learner's prediction. It is None if the exercise has none.
    """

    exercise: str
    run: str | None = None
    level: Level = "none"
    checks: tuple[CheckResult, ...] = field(default_factory=tuple)
    answers: tuple[AnswerResult, ...] = field(default_factory=tuple)
    prediction: AnswerResult | None = None
    parts: tuple[PartResult, ...] = ()
    part_reviews: dict[str, PartReview] = field(default_factory=dict)
    wanted: tuple[str, ...] = field(default_factory=tuple)
    handed_in: tuple[str, ...] = field(default_factory=tuple)
    changed: tuple[str, ...] = field(default_factory=tuple)
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One share of a row: one exercise and one kind of evidence.

    `share`: its part of the row.
    `of`: how many items it counts.
    `got`: how many items are earned; below 0 if choices stayed wrong.
    `waits`: how many items await a review.
    `note` and `short`: what is missing, by name and as a count.
    """

    exercise: str
    kind: str
    got: float
    of: int
    share: float = 0.0
    waits: float = 0.0
    note: str = ""
    short: str = ""


@dataclass(frozen=True, kw_only=True)
class RowScore:
    """One row of the rubric.

    `waiting`: the points that free text may still earn after a review.
    `level`: where it was measured.
    `missing`: what it still lacks, such as `3.1: no run yet; 3.2: 2 open`.
    """

    id: str
    title: str
    points: float
    earned: float
    waiting: float = 0.0
    level: Level = "none"
    missing: str = ""
    pieces: tuple[Piece, ...] = field(default_factory=tuple)


def list_missing(pieces: Sequence[Piece], *, names: bool = False) -> str:
    """Return what these pieces lack as counts, such as `3.1: no run yet; 3.2: 2 open`, or as names with `names`: `3.2: open:
    why`. A note that several exercises share appears once."""
    by_note: dict[str, list[str]] = {}
    for piece in pieces:
        if piece.note:
            by_note.setdefault(piece.note if names else piece.short, []).append(piece.exercise)
    return "; ".join(f"{', '.join(dict.fromkeys(exercises))}: {note}" for note, exercises in by_note.items())


@dataclass(frozen=True, kw_only=True)
class PartScore:
    """The points of one module. `counts` is course, bonus or own; `here` is False if the course has no such module."""

    module: str
    title: str
    counts: str
    here: bool
    points: float
    earned: float
    waiting: float
    rows: tuple[RowScore, ...] = field(default_factory=tuple)


@dataclass(kw_only=True)
class Try:
    """One attempt, with the answers as typed. Once `ended` is set, unanswered questions count as wrong."""

    started: str
    ended: str | None = None
    answers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class QuizScore:
    """The best finished attempt at the quiz."""

    right: int
    of: int
    tries: int
    ended: str


@dataclass(frozen=True, kw_only=True)
class Grade:
    """All points. `earned` is out of `points`, without the bonus.

    `learner_judged`: parts that count only because the learner's computer judged them, by the exercise's number.
    """

    version: int = 1
    points: float
    earned: float
    bonus_points: float
    bonus: float
    waiting: float
    parts: tuple[PartScore, ...] = field(default_factory=tuple)
    quiz: QuizScore | None = None
    changed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    learner_judged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    signs: dict[str, Signs] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Return how many exercises are done."""
        return sum(signs.is_done for signs in self.signs.values())

    @property
    def exercises(self) -> int:
        """Return how many exercises there are."""
        return len(self.signs)

    @property
    def own_points(self) -> float:
        """Return the available points of the modules that have a separate score."""
        return sum(part.points for part in self._own_parts)

    @property
    def own(self) -> float:
        """Return the earned points of the modules that have a separate score."""
        return round(sum(part.earned for part in self._own_parts), 2)

    @property
    def _own_parts(self) -> list[PartScore]:
        return [part for part in self.parts if part.counts == "own" and part.here]
