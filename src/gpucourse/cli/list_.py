"""The command `list`."""

from __future__ import annotations

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode, ManifestError


def list_(ctx: typer.Context, json: JsonFlag = False) -> int:
    """The syllabus, with what is done."""
    from gpucourse.learning.grade import grade
    from gpucourse.learning.progress import progress
    from gpucourse.ui.views.course import catalog as view

    session = session_of(ctx)
    catalog = session.context.catalog
    done = progress(session.context)
    broken = list(catalog.broken)
    points = None
    try:
        points = grade(session.context, thorough=False)
    except ManifestError as error:  # the rubric is wrong: the syllabus is worth showing all the same
        broken.append(error)
    if json:
        told = [error.what for error in broken]
        session.face.document({"modules": catalog.modules, "progress": done, "points": points, "broken": told})
    session.face.show(view(catalog.modules, done, broken, points))
    return ExitCode.USAGE if broken else ExitCode.DONE
