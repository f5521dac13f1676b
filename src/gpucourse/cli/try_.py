"""The command `try`: judges the learner's parts of an exercise without a lab."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode
from gpucourse.model.verdict import PartResult


class JudgedParts(JsonDocument):
    """The output of `try`: the learner's parts."""

    exercise: str
    parts: list[PartResult]


def try_(
    session: Session,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.3", autocompletion=complete.exercises)],
) -> int:
    """Judge your part of an exercise on this computer, in seconds."""
    from gpucourse.learning.try_ import try_parts
    from gpucourse.ui.views.parts import show_tried as view

    subject = session.require_exercise(exercise)
    context = session.context
    with session.console.watch() as live:
        tried_parts = try_parts(context.watched_by(live), subject)
    results = [item.result for item in tried_parts]
    session.present(view(subject, tried_parts, session.find_step(subject.id)), JudgedParts(exercise=subject.id, parts=results))
    has_failed = any(result.verdict in {"failed", "error"} for result in results)
    return ExitCode.CHECK_FAILED if has_failed else ExitCode.DONE
