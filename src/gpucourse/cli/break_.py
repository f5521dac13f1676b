"""The command `break`: an exercise with a fault in it; `check --diagnosis` judges what the learner takes it for."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def break_(
    ctx: typer.Context,
    exercise: Annotated[str, typer.Argument(help="An exercise with several ranks: 3.2", autocompletion=complete.exercises)],
    how: Annotated[
        Literal["kill-rank", "block-port", "wrong-world-size", "slow-rank"] | None,
        typer.Option("--how", help="Which fault (default: a random one).", show_default=False),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="On how many nodes.", show_default=False)] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter: --set batch_size=64")] = None,
    json: JsonFlag = False,
) -> int:
    """Run an exercise with a fault injected: find out from the logs what it was, then tell `check`."""
    from gpucourse.cli.flags import pairs
    from gpucourse.runs.break_ import break_exercise
    from gpucourse.runs.prepare import RunRequest
    from gpucourse.ui.views.drill import drill

    listed = f"gpucourse show {exercise} lists its parameters"
    run_request = RunRequest(exercise=exercise, nodes=nodes, settings=pairs(settings or [], listed))
    session = session_of(ctx)
    context = session.context
    session.console.mode(context.settings.target)
    with session.console.watch() as live:
        context.watch = live
        record = break_exercise(context, run_request, how).record
    if record is None:  # only a dry run has none
        raise AssertionError(exercise)
    if json:
        session.console.document({"run": record, "folder": context.paths.run(record.exercise, record.id).folder})
    session.console.show(drill(record))
    return ExitCode.DONE
