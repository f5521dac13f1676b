"""`dev`: a new course to begin with, and a course linted and, where wanted, every exercise of it run on simulated nodes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucourse.course.catalog import Catalog, load
from gpucourse.course.lint import lint
from gpucourse.course.locate import OVERRIDE, CourseFolders, course_in, find_course, find_named_course, find_template
from gpucourse.course.rules import SHARED
from gpucourse.course.schema import write_schema
from gpucourse.errors import UsageError
from gpucourse.learning.rehearse import Rehearsal, rehearse
from gpucourse.model.event import Watcher
from gpucourse.workspace.files import copy_file
from gpucourse.workspace.trust import require_course

_HINT = "name a folder that holds modules/ and exercises/: gpucourse dev check DIR"
HELPERS = ("bench.py", "ranks.py")
"""What every course may send along with its scripts: `dev new` puts a copy into `exercises/shared`."""


@dataclass(frozen=True, kw_only=True)
class CheckedCourse:
    """A course, everything that is wrong with it, and its exercises as they ran."""

    catalog: Catalog
    complaints: list[str]
    rehearsed: list[Rehearsal]


def check_course(folder: Path | None, *, run: bool, modules: Sequence[str], watch: Watcher) -> CheckedCourse:
    """Lint the course in `folder`, or the one in force; with `run` also run its exercises, of these modules where any is named.

    Raises UntrustedFolder before anything of a course that others may write to is run, UsageError for an unknown module.
    """
    environ = {OVERRIDE: str(folder)} if folder is not None else os.environ
    if run and (course := find_named_course(environ)) is not None:  # without `run` nothing of it is executed
        require_course(course, os.environ)
    catalog = load(find_chosen_course(folder))
    complaints = lint(catalog)
    rehearsed = list(rehearse(catalog, modules, watch)) if run and not catalog.errors else []
    complaints += [complaint for exercise in rehearsed for complaint in exercise.complaints]
    return CheckedCourse(catalog=catalog, complaints=complaints, rehearsed=rehearsed)


def find_chosen_course(folder: Path | None) -> CourseFolders:
    """The course in `folder`, or the one in force where none is given. Raises MissingError."""
    return find_course(os.environ) if folder is None else course_in(folder, named_by="DIR", hint=_HINT)


def start_course(folder: Path) -> tuple[str, ...]:
    """Put a course of one module with one exercise into `folder`, which is made where it is missing; the files, relative to it.

    Raises UsageError where something lies in the folder already.
    """
    root = folder.expanduser().absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        state = "holds files already" if root.is_dir() else "is a file"
        raise UsageError(f"{root} {state}, and a new course wants an empty folder", hint="gpucourse dev new DIR")
    template, shared = find_template(), find_course({}).exercises / SHARED
    sources = {path.relative_to(template): path for path in sorted(template.rglob("*")) if path.is_file()}
    sources |= {Path("exercises", SHARED, name): shared / name for name in HELPERS}
    copied = {place: path for place, path in sources.items() if path.suffix != ".pyc"}
    for place, path in copied.items():
        copy_file(path, root / place)
    schemas = write_schema(root / "modules")
    return tuple(sorted([*(place.as_posix() for place in copied), *(path.relative_to(root).as_posix() for path in schemas)]))
