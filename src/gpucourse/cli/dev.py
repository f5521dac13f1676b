"""The command `dev`, for authors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode, ManifestError, UsageError
from gpucourse.ui.text import format_count


def dev(
    ctx: typer.Context,
    what: Annotated[Literal["check"], typer.Argument(help="check: everything that is wrong with a course.")],
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder with modules/ and exercises/ (default: the current course).", show_default=False),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Also run every exercise on simulated nodes, and its solution.")] = False,
    module: Annotated[list[str] | None, typer.Option("--module", help="With --run: only this module.")] = None,
    json: JsonFlag = False,
) -> int:
    """Check a course that you write; with --run, also its exercises."""
    from gpucourse.learning.dev import check_course
    from gpucourse.ui.views.many import rehearsals

    if module and not run:
        raise UsageError("--module goes with --run", hint=f"gpucourse dev {what} --run --module 3")
    session = session_of(ctx)
    with session.console.watch() as live:
        checked = check_course(folder, run=run, modules=module or [], watch=live)
    if run and not checked.catalog.errors:
        session.console.show(rehearsals(checked.rehearsed))
    modules = checked.catalog.modules
    if json:
        session.console.document(
            {"modules": [module.id for module in modules], "complaints": checked.complaints, "exercises": checked.rehearsed}
        )
    if checked.complaints:
        raise ManifestError(checked.complaints, hint="how a module is written: docs/authoring.md")
    session.console.note(f"{checked.catalog.folders.modules}: {format_count(len(modules), 'module')}, no complaints")
    return ExitCode.DONE
