"""The command `watch`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import ParametersFlag, pairs
from gpucourse.cli.session import Session, session_of
from gpucourse.errors import ExitCode, GpucourseError, Interrupted, MissingError

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
    settings: ParametersFlag = None,
) -> int:
    """Judge your part, or run the exercise, each time you save a file."""
    from gpucourse.course.parameters import resolve
    from gpucourse.learning import watch as act
    from gpucourse.runs.prepare import RunRequest
    from gpucourse.ui.text import format_count

    session = session_of(ctx)
    context = session.context
    current_exercise = context.catalog.exercise(exercise)[1] if exercise else act.current(context)
    run_request = RunRequest(
        exercise=current_exercise.id,
        nodes=nodes,
        settings=pairs(settings or [], f"gpucourse show {current_exercise.id} lists its parameters"),
    )
    resolve(current_exercise, run_request.settings, local=_is_simulated(session, current_exercise))
    files = act.list_watched_files(context, current_exercise)
    known = act.read_stamps(files)  # before it is said: whoever saves at once is seen
    what = (
        "your part to have it judged, another file to run the exercise" if current_exercise.yours else "one to run the exercise"
    )
    session.console.note(
        f"watching {format_count(len(files), 'file')} of {current_exercise.id} in {context.paths.exercises}: save {what}. "
        "Ctrl-C ends."
    )
    try:
        for changed in act.wait_for_saves(context, files, known=known):
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


def _is_simulated(session: Session, exercise: Exercise) -> bool:
    """Whether the lab that runs go to is simulated. Raises MissingError where there is none, and no part that needs none."""
    from gpucourse.runs.prepare import find_deployed_lab

    context = session.context
    if any(part.judge and part.torch for part in exercise.yours):
        with suppress(MissingError):  # said when a part is judged
            context.judge.start(torch=True)  # while the person writes
    try:
        return find_deployed_lab(context, context.catalog.exercise(exercise.id)[0]).is_simulated
    except MissingError as error:
        if not any(part.judge for part in exercise.yours):
            raise
        session.console.note(f"{error.what}, so only your part is judged; for runs: {error.hint}")
        return True


def _again(session: Session, exercise: Exercise, run_request: RunRequest, changed: tuple[Path, ...]) -> None:
    """What a saved file asks for: new answers are weighed, a part is judged, a changed script is run and checked."""
    from gpucourse.cli.outcome import tell
    from gpucourse.learning.answer import take_sheet
    from gpucourse.learning.try_ import try_parts
    from gpucourse.learning.watch import list_judged_files, wrong_syntax
    from gpucourse.runs.run import run as act
    from gpucourse.ui.views.answers import answers
    from gpucourse.ui.views.parts import show_tried

    context = session.context
    sheet = context.paths.answers(exercise.id)
    if sheet in changed:
        session.console.show(answers(exercise, take_sheet(context, exercise)))
    judged = list_judged_files(context, exercise)
    if parts := [path for path in changed if path in judged]:
        with session.console.watch() as live:
            context.watch = live
            tried = try_parts(context, exercise, parts)
        session.console.show(show_tried(exercise, tried))
    scripts = tuple(path for path in changed if path not in {sheet, *judged})
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
