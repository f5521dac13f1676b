"""The command `next`."""

from __future__ import annotations

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode
from gpucourse.model.score import Signs


class Next(JsonDocument):
    """The next step, in words and as a command; `exercise` is null if all are done."""

    exercise: str | None
    signs: Signs | None
    what: str
    command: str


def next_(ctx: typer.Context, json: JsonFlag = False) -> int:
    """Where you are in the course, and the one thing to do now."""
    from gpucourse.learning.next_ import find_next_step
    from gpucourse.ui.views.course import next_step as view

    session = session_of(ctx)
    step = find_next_step(session.context)
    if json:
        number = step.exercise.id if step.exercise else None
        session.console.document(Next.of(step, exercise=number))
    session.console.show(view(step))
    return ExitCode.DONE
