"""The command `show`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def show(
    ctx: typer.Context,
    number: Annotated[str, typer.Argument(help="A module or an exercise: 3 or 3.2", autocompletion=complete.lessons)],
    json: JsonFlag = False,
) -> int:
    """A lesson (3), or an exercise (3.2)."""
    from gpucourse.learning.progress import progress
    from gpucourse.learning.show import still_open
    from gpucourse.ui.views import course

    session = session_of(ctx)
    catalog = session.context.catalog
    done = progress(session.context)
    if "." in number:
        module, exercise = catalog.exercise(number)
        verdict = done.get(exercise.id)
        lines, answers = still_open(session.context, exercise)
        if json:
            told = {"module": module.id, "exercise": exercise, "verdict": verdict, "answers": answers, "open": lines}
            session.console.document(told)
        session.console.show(course.exercise(module, exercise, verdict, answers=answers, open_parts=lines))
        return ExitCode.DONE
    module = catalog.module(number)
    if json:
        session.console.document({"module": module, "lesson": catalog.lesson(module)})
    session.console.show(course.module(module, catalog.lesson(module), done))
    return ExitCode.DONE
