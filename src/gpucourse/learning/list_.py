"""`list`: the modules and exercises, with the learner's progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.course.answer_sheet import load_sheet
from gpucourse.errors import GpucourseError, ManifestError
from gpucourse.learning.grade import grade
from gpucourse.learning.next_ import NextStep, find_next_step
from gpucourse.model.manifest import Module
from gpucourse.model.score import Grade
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.results import read_handed_in_verdict
from gpucourse.workspace.paths import WorkspacePaths


@dataclass(frozen=True, kw_only=True)
class Syllabus:
    """The modules, the newest verdict of each exercise, and the points if the rubric can be read. `broken` lists unreadable
    files. `step` is the next step, or None if a record cannot be read or the course has no exercises."""

    modules: Sequence[Module]
    step: NextStep | None
    progress: Mapping[str, ExerciseVerdict]
    points: Grade | None
    broken: Sequence[ManifestError]


def list_course(context: Context) -> Syllabus:
    """Return the syllabus of the course. An unreadable file does not hide the others."""
    catalog = context.catalog
    errors, points = list(catalog.errors), None
    try:
        points = grade(context, thorough=False)
    except ManifestError as error:  # the rubric has errors, but the syllabus is still useful
        errors.append(error)
    for exercise in catalog.exercises:
        try:
            load_sheet(context.paths.answers(exercise.id), exercise)
        except ManifestError as error:
            errors.append(error)
    step = None
    with suppress(GpucourseError):
        step = find_next_step(context)
    return Syllabus(modules=catalog.modules, step=step, progress=progress(context.paths), points=points, broken=errors)


def progress(paths: WorkspacePaths) -> dict[str, ExerciseVerdict]:
    """Return the newest verdict of every exercise that has one."""
    names = sorted(path.name for path in paths.deliverables_root.glob("*"))
    verdicts = {name: read_handed_in_verdict(paths, name) for name in names}
    return {exercise: verdict for exercise, verdict in verdicts.items() if verdict is not None}
