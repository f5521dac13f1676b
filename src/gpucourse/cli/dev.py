"""The command `dev`, for authors: creates a course, or checks one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session
from gpucourse.errors import ManifestError, UsageError
from gpucourse.model.verdict import Rehearsal
from gpucourse.ui.text import format_count


class CheckedCourseDocument(JsonDocument):
    """The output of `dev check`: the complaints about the course and, with --run, the results of its exercises."""

    modules: list[str]
    complaints: list[str]
    rehearsed: list[Rehearsal] = field(name="exercises")


class CourseFiles(JsonDocument):
    """The output of `dev new` and `dev schema`: the course's folder, and the paths of the written files relative to that
    folder."""

    folder: Path
    files: list[str]


def dev(
    session: Session,
    action: Annotated[
        Literal["new", "check", "schema"],
        typer.Argument(
            help="new: create a small course in an empty folder. check: list everything that is wrong with a course. "
            "schema: write the JSON Schemas that let editors complete and check YAML files."
        ),
    ],
    folder: Annotated[
        Path | None, typer.Argument(help="The folder of the course (default for check and schema: the current course).")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="With check: also run every exercise and its solution on simulated nodes.")
    ] = False,
    module: Annotated[
        list[str] | None, typer.Option("--module", help="With --run: only this module.", autocompletion=complete.modules)
    ] = None,
) -> None:
    """Start a new course, or check one."""
    if run and action != "check":
        raise UsageError("--run is only for dev check", hint="gpucourse dev check --run")
    if module and not run:
        raise UsageError("--module is only for --run", hint="gpucourse dev check --run --module 3")
    if action == "new":
        _start(session, folder)
    elif action == "schema":
        _write_schemas(session, folder)
    else:
        _check(session, folder, run=run, modules=module or [])


def _start(session: Session, folder: Path | None) -> None:
    from gpucourse.course.new_course import start_course

    if folder is None:
        raise UsageError("dev new needs a folder", hint="gpucourse dev new DIR")
    files = start_course(folder)
    session.console.document(CourseFiles(folder=folder.expanduser().absolute(), files=list(files)))
    session.console.note(f"{folder}: a course of one module with one exercise, {format_count(len(files), 'file')}")
    session.console.note(f"Next: gpucourse dev check {shlex.quote(str(folder))} --run")


def _write_schemas(session: Session, folder: Path | None) -> None:
    from gpucourse.course.schema import write_schema
    from gpucourse.learning.rehearse import find_chosen_course

    course = find_chosen_course(folder)
    files = [path.relative_to(course.modules.parent).as_posix() for path in write_schema(course.modules)]
    session.console.document(CourseFiles(folder=course.modules.parent, files=files))
    session.console.note(f"wrote {', '.join(Path(file).name for file in files)} in {course.modules}")


def _check(session: Session, folder: Path | None, *, run: bool, modules: list[str]) -> None:
    from gpucourse.learning.rehearse import check_course
    from gpucourse.ui.views.many import rehearsals

    with session.console.watch() as live:
        report = check_course(folder, run=run, modules=modules, watch=live)
    if run and not report.catalog.errors:
        session.console.show(rehearsals(report.rehearsed))
    valid_modules = report.catalog.modules
    session.console.document(CheckedCourseDocument.build(report, modules=[module.id for module in valid_modules]))
    if report.complaints:
        raise ManifestError(report.complaints, hint="how to write a module: docs/authoring.md")
    session.console.note(f"{report.catalog.folders.modules}: {format_count(len(valid_modules), 'module')}, no complaints")
