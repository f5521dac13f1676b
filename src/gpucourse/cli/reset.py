"""The command `reset`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def reset(
    ctx: typer.Context,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 1.1", autocompletion=complete.exercises)],
    json: JsonFlag = False,
) -> int:
    """Restore an exercise's files; your own versions are kept."""
    from gpucourse.learning.copies import reset as act
    from gpucourse.ui.views.parts import reset as view

    session = session_of(ctx)
    done = act(session.context, exercise)
    if json:
        session.console.document({"exercise": done.exercise.id, "files": done.files})
    session.console.show(view(done))
    return ExitCode.DONE
