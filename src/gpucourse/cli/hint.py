"""The command `hint`: shows the hints of an exercise, one at a time."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session
from gpucourse.errors import UsageError


class Hint(JsonDocument):
    """The output of `hint`: a hint, its number, and how many there are. `part` is the part that the hint is about, or null."""

    exercise: str
    hint: int
    number_of_hints: int = field(name="of")
    text: str
    part: str | None


class Hints(JsonDocument):
    """The output of `hint --all`."""

    exercise: str
    hints: list[Hint]


def hint(
    session: Session,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.2", autocompletion=complete.exercises)],
    number: Annotated[int | None, typer.Option("--number", help="Show the hint with this number.")] = None,
    part: Annotated[
        str | None,
        typer.Option("--part", help="Only hints for this part of the exercise.", autocompletion=complete.parts),
    ] = None,
    is_whole: Annotated[bool, typer.Option("--all", help="Show every hint.")] = False,
) -> None:
    """Show the next hint, for the part that is not right yet."""
    from gpucourse.learning.hint import show_hints
    from gpucourse.ui.views.course import hints as view

    if number is not None and (part or is_whole):
        raise UsageError(
            "--number cannot be combined with --part or --all", hint=f"gpucourse hint {exercise} --number {number}"
        )
    session.require_exercise(exercise)
    result = show_hints(session.context, exercise, number=number, part=part, is_whole=is_whole)
    all_hints = result.exercise.hints
    documents = [
        Hint.build(all_hints[place - 1], exercise=result.exercise.id, hint=place, number_of_hints=len(all_hints))
        for place in result.numbers
    ]
    shown_view = view(result.exercise, result.numbers, result.options)
    if not session.is_watching:
        step = session.find_step(result.exercise.id)
        if result.helps_try and step.startswith("gpucourse deploy"):  # trying a part needs no lab
            step = f"gpucourse try {result.exercise.id}"
        shown_view = shown_view._replace(next=step)
    elif result.options is not None:  # `watch` shows the keys and the next step below, but not that this was the last hint
        shown_view = shown_view._replace(footer=[])
    session.present(shown_view, Hints(exercise=result.exercise.id, hints=documents) if is_whole else documents[0])
