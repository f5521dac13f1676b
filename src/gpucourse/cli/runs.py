"""The command `runs`: lists the runs of the workspace."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, RunDocument
from gpucourse.cli.session import Session
from gpucourse.errors import UsageError


class ListedRunDocument(RunDocument):
    """A run in the list; `detail` says why its state may be outdated."""

    detail: str


class Runs(JsonDocument):
    """The output of `runs`: all runs or, with --limit, only the newest. The list begins with the oldest run."""

    runs: list[ListedRunDocument]


def runs(
    session: Session,
    exercise: Annotated[
        str | None,
        typer.Argument(
            help="Only the runs of this exercise, or of your script of this name.", autocompletion=complete.exercises
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the newest N runs.", metavar="N")] = None,
) -> None:
    """List the records of all runs."""
    from gpucourse.runs.parameter_sweep import complete_sweeps
    from gpucourse.runs.settle import list_settled_runs
    from gpucourse.ui.views.run import runs as view
    from gpucourse.workspace.runs import files_of, is_exercise_number, script_place

    context = session.look()
    is_script = exercise is not None and not is_exercise_number(exercise)
    place = script_place(Path(exercise)) if exercise and is_script else exercise
    rows, damaged = list_settled_runs(context, place)
    with session.console.watch() as live:
        complete_sweeps(context.watched_by(live), place)
    if exercise and not rows and not damaged:
        if is_script and Path(exercise).suffix:
            raise UsageError(f"{exercise} has no run yet", hint=shlex.join(["gpucourse", "run", "--script", exercise]))
        exercise = context.catalog.exercise(exercise)[1].id
    rows = rows[-limit:] if limit else rows
    has_logs = bool(rows) and bool(files_of(context.paths, rows[-1].record).all_logs())
    step = session.find_step("" if is_script else exercise or "")
    shown = view(rows, step, exercise=exercise or "", has_logs=has_logs)
    session.present(shown, Runs(runs=[ListedRunDocument.build(item.record, detail=item.detail) for item in rows]))
    if damaged:
        raise damaged[0]
