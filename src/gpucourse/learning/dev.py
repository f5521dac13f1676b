"""`dev check`: checks a course for errors and, with `--run`, runs its exercises on simulated nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucourse.course.catalog import Catalog, load
from gpucourse.course.lint import lint
from gpucourse.course.locate import OVERRIDE, CourseFolders, course_in, find_course, find_named_course
from gpucourse.learning.rehearse import rehearse
from gpucourse.model.event import Watcher
from gpucourse.model.verdict import Rehearsal
from gpucourse.workspace.trust import require_course

_HINT = "name a folder that contains modules/ and exercises/: gpucourse dev check DIR"


@dataclass(frozen=True, kw_only=True)
class CheckedCourse:
    """A course, all its errors, and the results of its exercises."""

    catalog: Catalog
    complaints: list[str]
    rehearsed: list[Rehearsal]


def check_course(folder: Path | None, *, run: bool, modules: Sequence[str], watch: Watcher) -> CheckedCourse:
    """Lint the course in `folder`, or the current course. With `run`, also run the exercises of `modules`, or all if it is
    empty.

    Raises UntrustedFolder if it would run code of a course that other users may write to. Raises UsageError for an unknown
    module.
    """
    environ = {OVERRIDE: str(folder)} if folder is not None else os.environ
    if run and (course := find_named_course(environ)) is not None:  # without `run`, nothing in the course is executed
        require_course(course, os.environ)
    catalog = load(find_chosen_course(folder))
    complaints = lint(catalog)
    rehearsed = list(rehearse(catalog, modules, watch)) if run and not catalog.errors else []
    complaints += [complaint for exercise in rehearsed for complaint in exercise.complaints]
    return CheckedCourse(catalog=catalog, complaints=complaints, rehearsed=rehearsed)


def find_chosen_course(folder: Path | None) -> CourseFolders:
    """Return the course in `folder`, or the current course if `folder` is None. Raises MissingError."""
    return find_course(os.environ) if folder is None else course_in(folder, hint=_HINT)
