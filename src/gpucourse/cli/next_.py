"""The command `next`."""

from __future__ import annotations

from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.model.score import Signs


class Next(JsonDocument):
    """The output of `next`: the next step, in words and as a command. `exercise` is null if all exercises are done."""

    exercise: str | None
    signs: Signs | None
    what: str
    command: str


def next_(session: Session) -> None:
    """Show where you are in the course, and the one thing to do now."""
    from gpucourse.learning.next_ import find_next_step
    from gpucourse.ui.views.course import next_step as view

    step = find_next_step(session.context)
    session.present(view(step), Next.build(step, exercise=step.exercise.id if step.exercise else None))
