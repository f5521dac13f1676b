"""The command `list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode
from gpucourse.model.score import Signs

if TYPE_CHECKING:
    from gpucourse.learning.list_ import Syllabus


class ListedExercise(JsonDocument):
    """An exercise of the syllabus. `verdict` is that of its newest run."""

    id: str
    title: str
    minutes: int
    verdict: str | None
    signs: Signs | None


class ListedModule(JsonDocument):
    """A module of the syllabus; without points if the course has no rubric that can be read."""

    id: str
    title: str
    hours: float
    points: float | None
    earned: float | None
    exercises: list[ListedExercise]


class Listing(JsonDocument):
    """`list`. `broken` are manifests that cannot be read."""

    modules: list[ListedModule]
    points: float | None
    earned: float | None
    broken: list[str]


def list_(ctx: typer.Context, json: JsonFlag = False) -> int:
    """Show the syllabus, and what you have done."""
    from gpucourse.learning.list_ import list_course
    from gpucourse.ui.views.course import catalog as view

    session = session_of(ctx)
    syllabus = list_course(session.context)
    if json:
        session.console.document(_describe(syllabus))
    session.console.show(view(syllabus.modules, syllabus.progress, syllabus.broken, syllabus.points))
    return ExitCode.USAGE if syllabus.broken else ExitCode.DONE


def _describe(syllabus: Syllabus) -> Listing:
    points = syllabus.points
    parts = {part.module: part for part in points.parts} if points else {}
    signs = points.signs if points else {}
    verdicts = {number: verdict.verdict for number, verdict in syllabus.progress.items()}
    return Listing(
        modules=[
            ListedModule.of(
                module,
                points=parts[module.id].points if module.id in parts else None,
                earned=parts[module.id].earned if module.id in parts else None,
                exercises=[
                    ListedExercise.of(exercise, verdict=verdicts.get(exercise.id), signs=signs.get(exercise.id))
                    for exercise in module.exercises
                ],
            )
            for module in syllabus.modules
        ],
        points=points.points if points else None,
        earned=points.earned if points else None,
        broken=[error.what for error in syllabus.broken],
    )
