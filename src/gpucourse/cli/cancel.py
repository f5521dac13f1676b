"""The command `cancel`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.output import OneRun, RunDocument
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def cancel(
    ctx: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(
            help="A run's id or a part of it, or an exercise (default: the newest run).", autocompletion=complete.active_runs
        ),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Stop a run on every node, and collect its outputs."""
    from gpucourse.runs.settle import cancel as act
    from gpucourse.ui.views.result import show_cancelled
    from gpucourse.workspace import runs as records

    session = session_of(ctx)
    context = session.context
    run_record = records.find(context.paths, run)
    session.console.mode(run_record.mode)
    with session.console.watch(brief=not session.console.verbose) as live:
        record = act(context.watched_by(live), run_record)
    if json:
        session.console.document(OneRun(run=RunDocument.of(record)))
    session.console.show(show_cancelled(record, session.find_step()))
    return ExitCode.DONE
