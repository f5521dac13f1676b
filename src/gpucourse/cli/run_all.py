"""`run --all`: every exercise of a module on every lab of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.outcome import show_next
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExerciseFailed, ExitCode

if TYPE_CHECKING:
    from gpucourse.model.deployment import Deployment
    from gpucourse.model.manifest import Exercise
    from gpucourse.runs.prepare import Order
    from gpucourse.runs.run import Ran


def run_all(session: Session, order: Order, *, json: bool) -> int:
    """Run every exercise of a module on every lab of it that is up; the exit code. Raises ExerciseFailed, CheckFailed."""
    from gpucourse.runs.run_module import labs
    from gpucourse.runs.run_module import run_all as act
    from gpucourse.ui.views.many import everything as view

    context = session.context
    module = context.catalog.module(order.exercise)
    first = labs(context, module, order)[0]
    session.face.mode(first.mode, first.lacks)
    of = len(module.exercises)

    def each(exercise: Exercise, lab: Deployment, go: Callable[[], Ran]) -> Ran:
        number = [one.id for one in module.exercises].index(exercise.id) + 1
        session.face.note(f"{lab.stack}, {number} of {of}: {exercise.id} {exercise.title}")
        return show_next(session, go)

    steps = act(context, module, order, each)
    if json:
        session.face.document({"steps": steps})
    session.face.show(view(steps))
    bad = [f"{one.exercise} on {one.lab}" for one in steps if not one.good]
    if not bad:
        return ExitCode.DONE
    ran = all(one.state in {"succeeded", "skipped"} for one in steps)
    words = f"{len(bad)} of {len(steps)} did not pass: {', '.join(bad)}"
    raise (CheckFailed if ran else ExerciseFailed)(words, hint="gpucourse runs")
