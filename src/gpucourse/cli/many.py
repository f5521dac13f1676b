"""Several runs in one command: `run --sweep` and `run --all`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.outcome import tell
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExerciseFailed, ExitCode, GpucourseError

if TYPE_CHECKING:
    from gpucourse.model.deployment import Deployment
    from gpucourse.model.manifest import Exercise
    from gpucourse.runs.prepare import Order
    from gpucourse.runs.run import Ran


def sweep(session: Session, order: Order, typed: str, *, json: bool) -> int:
    """Run an exercise with every value of a parameter; the exit code. Raises ExerciseFailed, CheckFailed."""
    from gpucourse.runs import parameter_sweep as act
    from gpucourse.runs.run import place
    from gpucourse.ui.views.many import sweep as view

    context = session.context
    parameter, values = act.values_of(context, order, typed)
    where = place(context, order)
    session.face.mode(where.mode, where.lacks)

    def each(value: object, number: int, go: Callable[[], Ran]) -> Ran:
        session.face.note(f"{number} of {len(values)}: {parameter.name}={value}")
        return _shown(session, go)

    done = act.sweep(context, order, parameter, values, each)
    if json:
        session.face.document({"sweep": done.sweep, "folder": done.folder, "files": done.files})
    session.face.show(view(done))
    if (error := act.failed(done.sweep)) is not None:
        raise error
    bad = [one for one in done.sweep.points if one.verdict in {"failed", "error"}]
    if bad:
        words = f"checks did not pass for {parameter.name}={', '.join(str(one.value) for one in bad)}"
        raise CheckFailed(words, hint=f"gpucourse check {order.exercise} --run {bad[0].run}")
    return ExitCode.DONE


def everything(session: Session, order: Order, *, json: bool) -> int:
    """Run every exercise of a module on every lab of it that is up; the exit code. Raises ExerciseFailed, CheckFailed."""
    from gpucourse.runs.run_module import labs, run_all
    from gpucourse.ui.views.many import everything as view

    context = session.context
    module = context.catalog.module(order.exercise)
    first = labs(context, module, order)[0]
    session.face.mode(first.target, first.lacks)
    of = len(module.exercises)

    def each(exercise: Exercise, lab: Deployment, go: Callable[[], Ran]) -> Ran:
        number = [one.id for one in module.exercises].index(exercise.id) + 1
        session.face.note(f"{lab.stack}, {number} of {of}: {exercise.id} {exercise.title}")
        return _shown(session, go)

    steps = run_all(context, module, order, each)
    if json:
        session.face.document({"steps": steps})
    session.face.show(view(steps))
    bad = [f"{one.exercise} on {one.lab}" for one in steps if not one.good]
    if not bad:
        return ExitCode.DONE
    ran = all(one.state in {"succeeded", "skipped"} for one in steps)
    words = f"{len(bad)} of {len(steps)} did not pass: {', '.join(bad)}"
    raise (CheckFailed if ran else ExerciseFailed)(words, hint="gpucourse runs")


def _shown(session: Session, go: Callable[[], Ran]) -> Ran:
    """Do one run, with its progress and its result on the screen; a failed check or exercise is said and does not end all."""
    with session.face.watch() as live:
        session.context.watch = live
        ran = go()
    if ran.attended is not None:
        try:
            tell(session, ran.attended, live, json=False)
        except GpucourseError as error:
            session.face.warn(error.what)
    return ran
