"""The documents of `grade`: points without the pieces that they are counted from, bundles, repeated runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

from gpucourse.grading.edits import FileEdit
from gpucourse.learning.review.rerun import Rerun
from gpucourse.model.score import QuizScore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpucourse.learning.bundle import Card
    from gpucourse.learning.review.edits import GradedBundle
    from gpucourse.model.score import Grade


class RowDocument(TypedDict):
    """A row of the rubric. `level` says where it was measured (gpu, logic, none), `missing` what it still lacks."""

    id: str
    title: str
    points: float
    earned: float
    waiting: float
    level: str
    missing: str


class PartDocument(TypedDict):
    """One module. `counts`: course, bonus, or own; `here` is false where the course has no such module."""

    module: str
    title: str
    counts: str
    here: bool
    points: float
    earned: float
    waiting: float
    rows: list[RowDocument]


class PointsDocument(TypedDict):
    """The points of one learner. `own` are the modules with a score of their own; `done` of `exercises` are done; `changed`
    names files of a run that were changed after it; `learner_judged` the parts that only the learner's computer judged."""

    points: float
    earned: float
    bonus_points: float
    bonus: float
    own_points: float
    own: float
    waiting: float
    done: int
    exercises: int
    parts: list[PartDocument]
    quiz: QuizScore | None
    changed: dict[str, list[str]]
    learner_judged: dict[str, list[str]]


class Points(PointsDocument):
    """`grade`."""


class CardDocument(TypedDict):
    """Who made a bundle, when, and how many files are in it."""

    by: str
    made: str
    workspace: str
    gpucourse: str
    files: int
    left_out: list[str]


class NewBundle(TypedDict):
    """`grade --bundle`."""

    bundle: str
    card: CardDocument


class EditsDocument(TypedDict):
    """What was edited for one exercise: `lines` of the course's own scripts, and the names of the files."""

    exercise: str
    lines: int
    files: list[str]


class BundleDocument(TypedDict):
    """One bundle that was opened; `changed` are files that were changed since it was made. `diffs` with --exercise."""

    bundle: str
    card: CardDocument
    changed: list[str]
    edited_lines: int
    edits: list[EditsDocument]
    diffs: NotRequired[list[FileEdit]]
    grade: PointsDocument


class GradedBundles(TypedDict):
    """`grade --open`."""

    bundles: list[BundleDocument]
    errors: list[str]


class Reruns(TypedDict):
    """`grade --rerun`: `original` says whether the course's own scripts replaced edited ones."""

    bundle: str
    card: CardDocument
    original: bool
    exercises: list[Rerun]


def describe_points(points: Grade) -> PointsDocument:
    """Return a grade without its pieces."""
    from gpucourse.ui.views.grade import say_missing

    own = [part for part in points.parts if part.counts == "own" and part.here]
    return {
        "points": points.points,
        "earned": points.earned,
        "bonus_points": points.bonus_points,
        "bonus": points.bonus,
        "own_points": sum(part.points for part in own),
        "own": round(sum(part.earned for part in own), 2),
        "waiting": points.waiting,
        "done": sum(signs.is_done for signs in points.signs.values()),
        "exercises": len(points.signs),
        "parts": [
            {
                "module": part.module,
                "title": part.title,
                "counts": part.counts,
                "here": part.here,
                "points": part.points,
                "earned": part.earned,
                "waiting": part.waiting,
                "rows": [
                    {
                        "id": row.id,
                        "title": row.title,
                        "points": row.points,
                        "earned": row.earned,
                        "waiting": row.waiting,
                        "level": row.level,
                        "missing": say_missing(row, short=True),
                    }
                    for row in part.rows
                ],
            }
            for part in points.parts
        ],
        "quiz": points.quiz,
        "changed": {name: list(files) for name, files in points.changed.items()},
        "learner_judged": {name: list(parts) for name, parts in points.learner_judged.items()},
    }


def describe_card(card: Card) -> CardDocument:
    """Return who made a bundle; its points are counted again."""
    return {
        "by": card.by,
        "made": card.made,
        "workspace": card.workspace,
        "gpucourse": card.gpucourse,
        "files": len(card.files),
        "left_out": list(card.left_out),
    }


def describe_bundle(graded: GradedBundle, exercise: str | None) -> BundleDocument:
    """Return one bundle of a class, with the diffs of the named exercise."""
    document: BundleDocument = {
        "bundle": str(graded.bundle.path),
        "card": describe_card(graded.bundle.card),
        "changed": list(graded.bundle.changed),
        "edited_lines": graded.edited_lines,
        "edits": [
            {
                "exercise": number,
                "lines": sum(edit.changed_lines for edit in edits if not edit.part),
                "files": [edit.file for edit in edits],
            }
            for number, edits in graded.edits.items()
        ],
        "grade": describe_points(graded.grade),
    }
    if exercise is not None:
        document["diffs"] = list(graded.edits.get(exercise, ()))
    return document


def describe_reruns(path: Path, card: Card, done: Sequence[Rerun], *, original: bool) -> Reruns:
    """Return runs that were repeated."""
    return {"bundle": str(path), "card": describe_card(card), "original": original, "exercises": list(done)}
