"""The command `report`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import Session, session_of
from gpucourse.errors import ExitCode, UsageError
from gpucourse.storage import find_login


def report(
    ctx: typer.Context,
    form: Annotated[
        Literal["html", "pdf", "md"] | None,
        typer.Option("--format", help="One format (default: html and pdf).", show_default=False),
    ] = None,
    of: Annotated[
        Literal["benchmarks", "course"],
        typer.Option("--of", help="benchmarks: the final project; course: all that you ran, wrote and answered."),
    ] = "benchmarks",
    author: Annotated[str, typer.Option("--author", help="The author's name (default: the owner in gpucourse.yaml).")] = "",
    json: JsonFlag = False,
) -> int:
    """Write the final project (HTML, PDF), or a report of the course."""
    from gpucourse.learning.report import report as act
    from gpucourse.ui.views.report import report as view

    session = session_of(ctx)
    context = session.context
    name = author or context.settings.owner or find_login()
    if of == "course":
        if form not in {None, "md"}:
            raise UsageError(f"--of course is written as Markdown, not as {form}", hint="gpucourse report --of course")
        return _report_course(session, name, json=json)
    with session.console.watch() as live:
        context.watch = live
        result = act(context, (form,) if form else ("html", "pdf"), name)
    if json:
        session.console.document(
            {"files": result.files, "subjects": result.report.subjects, "missing": result.report.everything_missing}
        )
    session.console.show(view(result))
    return ExitCode.DONE


def _report_course(session: Session, author: str, *, json: bool) -> int:
    from gpucourse.learning.course_report import report_course
    from gpucourse.ui.views.report import course_report

    result = report_course(session.context, author)
    if json:
        session.console.document(
            {"file": result.file, "exercises": result.exercises, "course_exercises": result.course_exercises}
        )
    session.console.show(course_report(result))
    return ExitCode.DONE
