"""The command `next`: shows where the learner is, and what to do now."""

from __future__ import annotations

from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.model.score import Signs


class Next(JsonDocument):
    """The output of `next`: the next step, in words and as a command. `exercise` is null if all exercises are done.

    `minutes` is how long the exercise takes, and `minutes_spent` the time that the learner has spent in it: before and during
    its runs, tries and answers, without pauses of more than 30 minutes.
    """

    exercise: str | None
    signs: Signs | None
    what: str
    command: str
    done: int
    exercises: int
    module_done: int
    module_exercises: int
    minutes: int | None
    minutes_spent: float


def next_(session: Session) -> None:
    """Show where you are in the course, and the one thing to do now."""
    from gpucourse.learning.next_ import find_next_step, measure_progress
    from gpucourse.ui.views.course import next_step as view

    context = session.look()
    if error := context.find_settings_error():
        session.console.warn(error)
    step = find_next_step(context)
    progress = measure_progress(context, step.exercise)
    document = Next.build(
        step,
        progress,
        exercise=step.exercise.id if step.exercise else None,
        minutes=step.exercise.minutes if step.exercise else None,
        minutes_spent=round(progress.seconds_spent / 60, 1),
    )
    session.present(view(step, progress), document)
