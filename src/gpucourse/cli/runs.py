"""The command `runs`: lists the runs of the workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, RunDocument
from gpucourse.cli.session import Session


class ListedRunDocument(RunDocument):
    """A run in the list; `detail` says why its state may be outdated."""

    detail: str


class Runs(JsonDocument):
    """The output of `runs`: all runs or, with --limit, only the newest. The list begins with the oldest run."""

    runs: list[ListedRunDocument]


def runs(
    session: Session,
    exercise: Annotated[
        str | None, typer.Argument(help="Only the runs of this exercise.", autocompletion=complete.exercises)
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the newest N runs.", metavar="N")] = None,
) -> None:
    """List the records of all runs."""
    from gpucourse.runs.parameter_sweep import complete_sweeps
    from gpucourse.runs.settle import list_settled_runs
    from gpucourse.ui.views.run import runs as view
    from gpucourse.workspace.runs import files_of

    context = session.look()
    rows, damaged = list_settled_runs(context, exercise)
    with session.console.watch() as live:
        complete_sweeps(context.watched_by(live), exercise)
    if exercise and not rows and not damaged:
        exercise = session.look().catalog.exercise(exercise)[1].id
    rows = rows[-limit:] if limit else rows
    has_logs = bool(rows) and bool(files_of(session.look().paths, rows[-1].record).all_logs())
    step = session.find_step(exercise or "")
    shown = view(rows, step, exercise=exercise or "", has_logs=has_logs)
    session.present(shown, Runs(runs=[ListedRunDocument.build(item.record, detail=item.detail) for item in rows]))
    if damaged:
        raise damaged[0]
