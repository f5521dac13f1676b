"""The command `cancel`: stops a run on every node, and collects its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import RunFlag, choose_run
from gpucourse.cli.output import OneRun
from gpucourse.cli.session import Session
from gpucourse.errors import UsageError
from gpucourse.model.record import RunRecord


def cancel(
    session: Session,
    run: Annotated[
        str | None,
        typer.Argument(help="A run's id or a part of it, an exercise, or: latest.", autocompletion=complete.active_runs),
    ] = None,
    run_option: RunFlag = None,
) -> None:
    """Stop a run on every node, and collect its outputs."""
    from gpucourse.runs.resolve import find_run
    from gpucourse.runs.settle import cancel as act
    from gpucourse.ui.views.result import show_cancelled
    from gpucourse.workspace import runs as records

    context = session.look()
    run = choose_run(run, run_option)
    if run is None:
        raise _explain_missing_run(records.list_unfinished(context.paths))
    run_record = find_run(context, run)
    session.console.mode(run_record.mode)
    with session.console.watch(brief=not session.console.verbose) as live:
        record = act(context.watched_by(live), run_record)
    session.present(
        show_cancelled(record, session.find_step("" if record.own_script else record.exercise)), OneRun.build(run=record)
    )


def _explain_missing_run(active_runs: Sequence[RunRecord]) -> UsageError:
    """Return the error of `cancel` without a run. Its hint is the command that cancels the newest run under way."""
    if not active_runs:
        return UsageError("cancel needs a run, and no run is under way", hint="gpucourse runs")
    names = ", ".join(f"{record.id} ({record.subject})" for record in active_runs)
    return UsageError(f"cancel needs a run; under way: {names}", hint=f"gpucourse cancel {active_runs[-1].id}")
