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
    from gpucourse.runs.prepare import Order


def watch(
    ctx: typer.Context,
    exercise: Annotated[
        str | None,
        typer.Argument(help="The number of an exercise; that of the newest run without.", autocompletion=complete.exercises),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="On how many nodes.", show_default=False)] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter: --set batch_size=64")] = None,
) -> int:
    """Run and check an exercise again each time you save one of its files, until Ctrl-C."""
    from gpucourse.course.parameters import resolve
    from gpucourse.learning import watch as act
    from gpucourse.runs.prepare import Order, deployed
    from gpucourse.ui.text import counted

    session = session_of(ctx)
    context = session.context
    found = context.catalog.exercise(exercise)[1] if exercise else act.current(context)
    order = Order(
        exercise=found.id, nodes=nodes, settings=pairs(settings or [], f"gpucourse show {found.id} lists its parameters")
    )
    module, _ = context.catalog.exercise(found.id)
    resolve(found, order.settings, local=deployed(context, module).simulated)
    files = act.watched(context, found)
    session.face.note(
        f"watching {counted(len(files), 'file')} of {found.id} in {context.paths.exercises}: "
        "save one, and it runs. Ctrl-C ends."
    )
    try:
        for changed in act.saved(context, files):
            session.face.note(f"saved: {', '.join(path.name for path in changed)}")
            try:
                _again(session, found, order, changed)
            except Interrupted as error:
                session.face.error(error)
                break
            except GpucourseError as error:
                session.face.error(error)
            session.face.note("watching; Ctrl-C ends")
    except KeyboardInterrupt:
        session.face.note("no longer watching")
    return ExitCode.DONE


def _again(session: Session, exercise: Exercise, order: Order, changed: tuple[Path, ...]) -> None:
    """What a saved file asks for: new answers are weighed, a changed script is run and checked."""
    from gpucourse.cli.outcome import tell
    from gpucourse.learning.evidence import answers_of
    from gpucourse.learning.watch import wrong_syntax
    from gpucourse.runs.run import run as act
    from gpucourse.ui.views.answers import answers

    context = session.context
    sheet = context.paths.answers(exercise.id)
    if sheet in changed:
        session.face.show(answers(exercise, answers_of(context, exercise)))
    scripts = tuple(path for path in changed if path != sheet)
    if not scripts:
        return
    if complaint := wrong_syntax(scripts):
        session.face.warn(f"{complaint}; it was not run")
        return
    with session.face.watch() as live:
        context.watch = live
        result = act(context, order, detach=False, dry_run=False)
    if result.attended is not None:
        tell(session, result.attended, live, json=False)
