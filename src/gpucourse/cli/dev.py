"""The command `dev`, for authors."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session, session_of
from gpucourse.errors import ExitCode, ManifestError, UsageError
from gpucourse.model.verdict import Rehearsal
from gpucourse.ui.text import format_count


class CheckedCourseDocument(JsonDocument):
    """`dev check`: complaints about the course, and with --run its exercises as they ran."""

    modules: list[str]
    complaints: list[str]
    rehearsed: list[Rehearsal] = field(name="exercises")


class CourseFiles(JsonDocument):
    """`dev new` and `dev schema`: the folder of the course, and the files that were written, relative to it."""

    folder: Path
    files: list[str]


def dev(
    ctx: typer.Context,
    action: Annotated[
        Literal["new", "check", "schema"],
        typer.Argument(
            help="new: a small course to begin with, in an empty folder. check: everything that is wrong with a course. "
            "schema: the JSON Schemas that editors complete and check YAML files by."
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder of the course (check and schema: default, the current course).", show_default=False),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="With check: also run every exercise on simulated nodes, and its solution.")
    ] = False,
    module: Annotated[
        list[str] | None,
        typer.Option("--module", help="With --run: only this module.", autocompletion=complete.modules),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Begin a course of your own, or check one."""
    if run and action != "check":
        raise UsageError("--run goes with dev check", hint="gpucourse dev check --run")
    if module and not run:
        raise UsageError("--module goes with --run", hint="gpucourse dev check --run --module 3")
    session = session_of(ctx)
    if action == "new":
        return _start(session, folder, json=json)
    if action == "schema":
        return _write_schemas(session, folder, json=json)
    return _check(session, folder, run=run, modules=module or [], json=json)


def _start(session: Session, folder: Path | None, *, json: bool) -> int:
    from gpucourse.course.new_course import start_course

    if folder is None:
        raise UsageError("dev new needs a folder", hint="gpucourse dev new DIR")
    files = start_course(folder)
    if json:
        session.console.document(CourseFiles(folder=folder.expanduser().absolute(), files=list(files)))
    session.console.note(f"{folder}: a course of one module with one exercise, {format_count(len(files), 'file')}")
    session.console.note(f"Next: gpucourse dev check {shlex.quote(str(folder))} --run")
    return ExitCode.DONE


def _write_schemas(session: Session, folder: Path | None, *, json: bool) -> int:
    from gpucourse.course.schema import write_schema
    from gpucourse.learning.dev import find_chosen_course

    course = find_chosen_course(folder)
    files = [path.relative_to(course.modules.parent).as_posix() for path in write_schema(course.modules)]
    if json:
        session.console.document(CourseFiles(folder=course.modules.parent, files=files))
    session.console.note(f"{course.modules}: {', '.join(Path(file).name for file in files)}")
    return ExitCode.DONE


def _check(session: Session, folder: Path | None, *, run: bool, modules: list[str], json: bool) -> int:
    from gpucourse.learning.dev import check_course
    from gpucourse.ui.views.many import rehearsals

    with session.console.watch() as live:
        checked = check_course(folder, run=run, modules=modules, watch=live)
    if run and not checked.catalog.errors:
        session.console.show(rehearsals(checked.rehearsed))
    good = checked.catalog.modules
    if json:
        session.console.document(CheckedCourseDocument.of(checked, modules=[module.id for module in good]))
    if checked.complaints:
        raise ManifestError(checked.complaints, hint="how a module is written: docs/authoring.md")
    session.console.note(f"{checked.catalog.folders.modules}: {format_count(len(good), 'module')}, no complaints")
    return ExitCode.DONE
