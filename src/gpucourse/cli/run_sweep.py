"""`run --sweep`: an exercise with every value of a parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.outcome import show_next
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExitCode

if TYPE_CHECKING:
    from gpucourse.runs.prepare import Order
    from gpucourse.runs.run import Ran


def run_sweep(session: Session, order: Order, typed: str, *, json: bool) -> int:
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
        return show_next(session, go)

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
