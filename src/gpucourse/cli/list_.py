"""The command `list`."""

from __future__ import annotations

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def list_(ctx: typer.Context, json: JsonFlag = False) -> int:
    """Show the syllabus, and what you have done."""
    from gpucourse.learning.list_ import list_course
    from gpucourse.ui.views.course import catalog as view

    session = session_of(ctx)
    syllabus = list_course(session.context)
    if json:
        from gpucourse.cli.documents.describe import describe_course

        session.console.document(describe_course(syllabus))
    session.console.show(view(syllabus.modules, syllabus.progress, syllabus.broken, syllabus.points))
    return ExitCode.USAGE if syllabus.broken else ExitCode.DONE
