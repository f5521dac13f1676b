"""The command `cancel`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import OneRun
from gpucourse.cli.session import Session


def cancel(
    session: Session,
    run: Annotated[
        str | None,
        typer.Argument(
            help="A run's id or a part of it, or an exercise (default: the newest run).", autocompletion=complete.active_runs
        ),
    ] = None,
) -> None:
    """Stop a run on every node, and collect its outputs."""
    from gpucourse.runs.settle import cancel as act
    from gpucourse.ui.views.result import show_cancelled
    from gpucourse.workspace import runs as records

    context = session.context
    run_record = records.find(context.paths, run)
    session.console.mode(run_record.mode)
    with session.console.watch(brief=not session.console.verbose) as live:
        record = act(context.watched_by(live), run_record)
    session.present(show_cancelled(record, session.find_step()), OneRun.build(run=record))
