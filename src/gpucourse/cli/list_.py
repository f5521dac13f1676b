"""The command `list`: shows the syllabus with the learner's progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode
from gpucourse.model.score import Signs

if TYPE_CHECKING:
    from gpucourse.learning.list_ import Syllabus


class ListedExercise(JsonDocument):
    """An exercise of the syllabus, with the verdict of its newest run."""

    id: str
    title: str
    minutes: int
    verdict: str | None
    signs: Signs | None


class ListedModule(JsonDocument, kw_only=True):
    """A module of the syllabus, with its points in the whole course; they are null if the rubric cannot be read."""

    id: str
    title: str
    hours: float
    points: float | None = None
    earned: float | None = None
    exercises: list[ListedExercise]


class Listing(JsonDocument, kw_only=True):
    """The output of `list`. `broken` has an error for each manifest that cannot be read."""

    modules: list[ListedModule]
    points: float | None = None
    earned: float | None = None
    broken: list[str]


def list_(
    session: Session,
    is_whole: Annotated[
        bool, typer.Option("--all", help="Show the exercises of every module, not only of the current one.")
    ] = False,
) -> int:
    """Show the syllabus, and what you have done."""
    from gpucourse.learning.list_ import list_course
    from gpucourse.ui.views.course import catalog as view

    syllabus = list_course(session.look())
    session.present(view(syllabus, whole=is_whole), _describe(syllabus))
    return ExitCode.USAGE if syllabus.broken else ExitCode.DONE


def _describe(syllabus: Syllabus) -> Listing:
    points = syllabus.points
    scores = {module.module: module for module in points.whole_course.modules} if points else {}
    signs = points.signs if points else {}
    verdicts = {number: verdict.verdict for number, verdict in syllabus.progress.items()}
    return Listing.build(
        points,
        modules=[
            ListedModule.build(
                module,
                scores.get(module.id),
                exercises=[
                    ListedExercise.build(exercise, verdict=verdicts.get(exercise.id), signs=signs.get(exercise.id))
                    for exercise in module.exercises
                ],
            )
            for module in syllabus.modules
        ],
        broken=[error.what for error in syllabus.broken],
    )
