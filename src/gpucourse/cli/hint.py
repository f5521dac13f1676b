"""The command `hint`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


class Hint(JsonDocument):
    """`hint`: a hint, its number, and how many there are."""

    exercise: str
    hint: int
    number_of_hints: int = field(name="of")
    text: str


def hint(
    ctx: typer.Context,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.2", autocompletion=complete.exercises)],
    json: JsonFlag = False,
) -> int:
    """Show the next hint, one at a time."""
    from gpucourse.learning.hint import next_hint
    from gpucourse.ui.views.course import hint as view

    session = session_of(ctx)
    current_exercise, number = next_hint(session.context, exercise)
    if json:
        hints = current_exercise.hints
        document = Hint(exercise=current_exercise.id, hint=number, number_of_hints=len(hints), text=hints[number - 1])
        session.console.document(document)
    session.console.show(view(current_exercise, number))
    return ExitCode.DONE
