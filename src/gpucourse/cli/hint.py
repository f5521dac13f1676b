"""The command `hint`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session


class Hint(JsonDocument):
    """The output of `hint`: a hint, its number, and how many there are."""

    exercise: str
    hint: int
    number_of_hints: int = field(name="of")
    text: str


def hint(
    session: Session,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.2", autocompletion=complete.exercises)],
) -> None:
    """Show the next hint."""
    from gpucourse.learning.hint import next_hint
    from gpucourse.ui.views.course import hint as view

    current_exercise, number = next_hint(session.context, exercise)
    hints = current_exercise.hints
    document = Hint(exercise=current_exercise.id, hint=number, number_of_hints=len(hints), text=hints[number - 1])
    session.present(view(current_exercise, number), document)
