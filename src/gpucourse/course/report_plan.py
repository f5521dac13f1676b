"""`modules/report.yaml`: the plan of the course's final report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpucourse.course.written import read_beside
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.report_plan import ReportChapter, ReportPlan

FILE = "report.yaml"


def read_report_plan(modules: Path) -> ReportPlan | None:
    """Read the plan next to the modules, or return None if there is none. Raises ManifestError with every error."""
    return read_beside(modules, FILE, ReportPlan)


def find_unknown_modules(plan: ReportPlan, modules: tuple[Module, ...]) -> Iterator[str]:
    """Yield the exercises, tables, parameters and questions in the plan that this course does not have, one line each."""
    exercises = {exercise.id: exercise for module in modules for exercise in module.exercises}
    for chapter in plan.chapters:
        label = f"{FILE}: chapters.{chapter.id}"
        exercise = exercises.get(chapter.exercise)
        if exercise is None:
            yield f"{label}.exercise: there is no exercise {chapter.exercise}"
        else:
            yield from (f"{label}.{reason}" for reason in _find_unknown_names(chapter, exercise))


def _find_unknown_names(chapter: ReportChapter, exercise: Exercise) -> Iterator[str]:
    tables, questions = {table.title for table in exercise.tables}, {question.id for question in exercise.questions}
    yield from (f"tables: {exercise.id} has no table '{title}'" for title in chapter.tables if title not in tables)
    yield from (
        f"words: {exercise.id} has no question '{prompt.question}'"
        for prompt in chapter.words
        if prompt.question not in questions
    )
    if chapter.by and exercise.parameter(chapter.by) is None:
        yield f"by: {exercise.id} has no parameter '{chapter.by}'"
