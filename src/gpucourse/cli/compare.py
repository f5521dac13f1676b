"""The command `compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def compare(
    ctx: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(help="Two runs or more of one exercise, or of one script of your own.", autocompletion=complete.runs),
    ],
    json: JsonFlag = False,
) -> int:
    """Compare runs of one exercise, or of one script."""
    from gpucourse.learning.compare import compare as act
    from gpucourse.ui.views.compare import compare as view

    session = session_of(ctx)
    context = session.context
    with session.console.watch() as live:
        context.watch = live
        result = act(context, runs)
    if json:
        from gpucourse.cli.documents.describe import describe_comparison

        session.console.document(describe_comparison(result))
    session.console.show(view(result, session.find_step()))
    return ExitCode.DONE
