"""The command `watch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import pairs
from gpucourse.cli.session import Session, session_of
from gpucourse.errors import ExitCode, GpucourseError, Interrupted

if TYPE_CHECKING:
    from gpucourse.model.manifest import Exercise
    from gpucourse.runs.prepare import RunRequest


def watch(
    ctx: typer.Context,
    exercise: Annotated[
        str | None,
        typer.Argument(help="The number of an exercise (default: that of the newest run).", autocompletion=complete.exercises),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="On how many nodes.", show_default=False)] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter: --set batch_size=64")] = None,
) -> int:
    """Run and check an exercise again each time you save one of its files, until Ctrl-C."""
    from gpucourse.course.parameters import resolve
    from gpucourse.learning import watch as act
    from gpucourse.runs.prepare import RunRequest, find_deployed_lab
    from gpucourse.ui.text import format_count

    session = session_of(ctx)
    context = session.context
    current_exercise = context.catalog.exercise(exercise)[1] if exercise else act.current(context)
    run_request = RunRequest(
        exercise=current_exercise.id,
        nodes=nodes,
        settings=pairs(settings or [], f"gpucourse show {current_exercise.id} lists its parameters"),
    )
    module, _ = context.catalog.exercise(current_exercise.id)
    resolve(current_exercise, run_request.settings, local=find_deployed_lab(context, module).is_simulated)
    files = act.list_watched_files(context, current_exercise)
    session.console.note(
        f"watching {format_count(len(files), 'file')} of {current_exercise.id} in {context.paths.exercises}: "
        "save one, and it runs. Ctrl-C ends."
    )
    try:
        for changed in act.wait_for_saves(context, files):
            session.console.note(f"saved: {', '.join(path.name for path in changed)}")
            try:
                _again(session, current_exercise, run_request, changed)
            except Interrupted as error:
                session.console.error(error)
                break
            except GpucourseError as error:
                session.console.error(error)
            session.console.note("watching; Ctrl-C ends")
    except KeyboardInterrupt:
        session.console.note("no longer watching")
    return ExitCode.DONE


def _again(session: Session, exercise: Exercise, run_request: RunRequest, changed: tuple[Path, ...]) -> None:
    """What a saved file asks for: new answers are weighed, a changed script is run and checked."""
    from gpucourse.cli.outcome import tell
    from gpucourse.learning.answer import take_sheet
    from gpucourse.learning.watch import wrong_syntax
    from gpucourse.runs.run import run as act
    from gpucourse.ui.views.answers import answers

    context = session.context
    sheet = context.paths.answers(exercise.id)
    if sheet in changed:
        session.console.show(answers(exercise, take_sheet(context, exercise)))
    scripts = tuple(path for path in changed if path != sheet)
    if not scripts:
        return
    if complaint := wrong_syntax(scripts):
        session.console.warn(f"{complaint}; it was not run")
        return
    with session.console.watch() as live:
        context.watch = live
        result = act(context, run_request, detach=False, dry_run=False)
    if result.followed_run is not None:
        tell(session, result.followed_run, live, json=False)
