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
    `changed`: the run's files that were changed after the run.
    `level`: `gpu` if the run used a GPU, `logic` if it did not, and `none` if there is no run.
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
    `got`: how many items are earned. It is below 0 if wrong choices outweigh the rest.
    `waits`: how many items a review may still add.
    `unreviewed`: how many texts neither the learner nor a reviewer has judged.
    `note` and `short`: what is missing, by name and as a count.
    """

    exercise: str
    kind: str
    got: float
    of: int
    share: float = 0.0
    waits: float = 0.0
    unreviewed: int = 0
    note: str = ""
    short: str = ""


@dataclass(frozen=True, kw_only=True)
class RowScore:
    """One row of the rubric.

    `waiting`: the points that free text may still earn after a review.
    `level`: `gpu` or `logic`, as in ExerciseEvidence.
    `missing`: what it still lacks, such as `3.1: no run yet; 3.2: 2 answers open`.
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
    """Return a text that lists what is missing. A text that several exercises share appears once.

    By default it has counts: `3.1: no run yet; 3.2: 1 part open, 2 answers open`. If `names` is true, it has names:
    `3.2: open: why`.
    """
    by_exercise: dict[str, list[str]] = {}
    for piece in pieces:
        if piece.note:
            by_exercise.setdefault(piece.exercise, []).append(piece.note if names else piece.short)
    by_text: dict[str, list[str]] = {}
    for exercise, notes in by_exercise.items():
        by_text.setdefault(("; " if names else ", ").join(dict.fromkeys(notes)), []).append(exercise)
    return "; ".join(f"{', '.join(exercises)}: {text}" for text, exercises in by_text.items())


@dataclass(frozen=True, kw_only=True)
class ModuleScore:
    """The points of one module in the whole course, with a row for each exercise. The id of a row is the exercise's number."""

    module: str
    title: str
    points: float
    earned: float
    waiting: float
    rows: tuple[RowScore, ...] = field(default_factory=tuple)


@dataclass(frozen=True, kw_only=True)
class PartScore(ModuleScore):
    """The points of one module in the rubric, with a row for each row of the rubric. `counts` is course or bonus; `here` is
    False if the course has no such module."""

    counts: str
    here: bool


@dataclass(frozen=True, kw_only=True)
class WholeCourse:
    """The points of the whole course: the sum of all modules. `percent` is the earned share."""

    points: float = 0.0
    earned: float = 0.0
    waiting: float = 0.0
    percent: float = 0.0
    modules: tuple[ModuleScore, ...] = field(default_factory=tuple)


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
    """All points. `points` is the rubric's total, and `earned` is how many of them are earned, both without the bonus.

    `whole_course`: the points of every module with its exercises, which do not depend on the rubric.
    `learner_judged`: parts that count only because the learner's computer judged them, by the exercise's number.
    """

    version: int = 1
    points: float
    earned: float
    bonus_points: float
    bonus: float
    waiting: float
    parts: tuple[PartScore, ...] = field(default_factory=tuple)
    whole_course: WholeCourse = field(default_factory=WholeCourse)
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
