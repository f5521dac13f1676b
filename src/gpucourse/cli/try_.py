"""The command `try`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode
from gpucourse.model.verdict import PartResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpucourse.learning.try_ import TriedPart


class JudgedParts(JsonDocument):
    """`try`: the learner's parts."""

    exercise: str
    parts: list[PartResult]


def try_(
    ctx: typer.Context,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.3", autocompletion=complete.exercises)],
    json: JsonFlag = False,
) -> int:
    """Judge your part of an exercise on this computer, in seconds."""
    from gpucourse.learning.try_ import try_parts
    from gpucourse.ui.views.parts import show_tried as view

    session = session_of(ctx)
    context = session.context
    _, subject = context.catalog.exercise(exercise)
    with session.console.watch() as live:
        tried_parts = try_parts(context.watched_by(live), subject)
    if json:
        session.console.document(JudgedParts(exercise=subject.id, parts=[item.result for item in tried_parts]))
    code = code_of(tried_parts)
    step = "" if code or any(item.result.verdict == "open" for item in tried_parts) else session.find_step()
    session.console.show(view(subject, tried_parts, step))
    return code


def code_of(tried_parts: Sequence[TriedPart]) -> int:
    """Return the exit code: 5 if a part is wrong, or could not be judged; 0 if all are right, or open."""
    bad = any(item.result.verdict in {"failed", "error"} for item in tried_parts)
    return ExitCode.CHECK_FAILED if bad else ExitCode.DONE
