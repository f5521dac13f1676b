"""The command `report`."""

from __future__ import annotations

import getpass
from typing import Annotated, Literal

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def report(
    ctx: typer.Context,
    form: Annotated[
        Literal["html", "pdf", "md"] | None,
        typer.Option("--format", help="One format (default: html and pdf).", show_default=False),
    ] = None,
    author: Annotated[str, typer.Option("--author", help="The author's name (default: the owner in gpucourse.yaml).")] = "",
    json: JsonFlag = False,
) -> int:
    """The final project: 2 to 3 pages from your own runs and words, as HTML and PDF."""
    from gpucourse.learning.report import report as act
    from gpucourse.ui.views.report import report as view

    session = session_of(ctx)
    context = session.context
    with session.console.watch() as live:
        context.watch = live
        result = act(context, (form,) if form else ("html", "pdf"), author or context.settings.owner or getpass.getuser())
    if json:
        session.console.document(
            {"files": result.files, "subjects": result.report.subjects, "missing": result.report.everything_missing}
        )
    session.console.show(view(result))
    return ExitCode.DONE
