"""The command `dev`, for authors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import Session, session_of
from gpucourse.errors import ExitCode, ManifestError, UsageError
from gpucourse.ui.text import counted

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog
    from gpucourse.learning.rehearse import Rehearsed

_HOLDS = "name a folder that holds modules/ and exercises/: gpucourse dev check DIR"


def dev(
    ctx: typer.Context,
    what: Annotated[Literal["check"], typer.Argument(help="check: everything that is wrong with a course.")],
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder with modules/ and exercises/; the course in force without.", show_default=False),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Also run every exercise on simulated nodes, and its solution.")] = False,
    module: Annotated[list[str] | None, typer.Option("--module", help="With --run: only this module.")] = None,
    json: JsonFlag = False,
) -> int:
    """For authors: the whole course linted; with --run every exercise run on simulated nodes."""
    from gpucourse.course.catalog import load
    from gpucourse.course.lint import lint
    from gpucourse.course.locate import OVERRIDE, course_in, find_course, named_course
    from gpucourse.workspace.trust import require_course

    if module and not run:
        raise UsageError("--module goes with --run", hint=f"gpucourse dev {what} --run --module 3")
    session = session_of(ctx)
    environment = {OVERRIDE: str(folder)} if folder is not None else os.environ
    if run and (course := named_course(environment)) is not None:  # without --run nothing of it is executed
        require_course(course, os.environ)
    catalog = load(find_course(os.environ) if folder is None else course_in(folder, named_by="DIR", hint=_HOLDS))
    found = lint(catalog)
    done: list[Rehearsed] = []
    if run and not catalog.broken:
        done = _rehearsed(session, catalog, module or [])
        found += [line for one in done for line in one.complaints]
    if json:
        session.face.document({"modules": [each.id for each in catalog.modules], "complaints": found, "exercises": done})
    if found:
        raise ManifestError(found, hint="how a module is written: docs/authoring.md")
    session.face.note(f"{catalog.folders.modules}: {counted(len(catalog.modules), 'module')}, nothing to complain about")
    return ExitCode.DONE


def _rehearsed(session: Session, catalog: Catalog, only: list[str]) -> list[Rehearsed]:
    from gpucourse.learning.rehearse import rehearse
    from gpucourse.ui.views.many import rehearsed

    with session.face.watch() as live:
        done = list(rehearse(catalog, only, live))
    session.face.show(rehearsed(done))
    return done
