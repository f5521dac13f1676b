"""The command `reset`: restores the course's files of an exercise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session


class ResetFiles(JsonDocument):
    """The output of `reset`. `files` maps each restored file to the path where the learner's own version is kept, or to null if
    the learner had no version of it."""

    exercise: str
    files: dict[str, Path | None]


def reset(
    session: Session,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 1.1", autocompletion=complete.exercises)],
    file: Annotated[str | None, typer.Option("--file", help="Only this file, such as my_ddp.py.")] = None,
) -> None:
    """Restore an exercise's files; your own versions are kept."""
    from gpucourse.learning.copies import reset as act
    from gpucourse.ui.views.parts import reset as view

    session.require_exercise(exercise)
    result = act(session.context, exercise, file)
    document = ResetFiles(exercise=result.exercise.id, files=result.files)
    session.present(view(result), document, place=result.exercise.id)
