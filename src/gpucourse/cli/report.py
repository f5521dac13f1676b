"""The command `report`: writes the final report, or a report of the whole course."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session
from gpucourse.errors import UsageError


class ReportFiles(JsonDocument):
    """The output of `report`: the files, the subjects that are compared, and what is still missing."""

    files: list[Path]
    subjects: list[str]
    everything_missing: list[str] = field(name="missing")


def report(
    session: Session,
    form: Annotated[
        Literal["html", "pdf", "md"] | None,
        typer.Option("--format", help="One format (default: html and pdf; the course is always md)."),
    ] = None,
    of: Annotated[
        Literal["benchmarks", "course"],
        typer.Option("--of", help="benchmarks: the final project; course: everything that you ran, wrote and answered."),
    ] = "benchmarks",
    author: Annotated[str, typer.Option("--author", help="The author's name (default: the owner in gpucourse.yaml).")] = "",
) -> None:
    """Write the final project (HTML, PDF), or a report of the course."""
    from gpucourse.learning.course_report import report_course
    from gpucourse.learning.report import report as act
    from gpucourse.ui.views.report import course_report
    from gpucourse.ui.views.report import report as view

    context = session.look(with_note=True)
    name = author or context.settings.owner
    if of == "course":
        if form not in {None, "md"}:
            raise UsageError(f"--of course is written as Markdown, not as {form}", hint="gpucourse report --of course")
        course = report_course(context, name)
        session.present(course_report(course), course, place="")
        return
    with session.console.watch() as live:
        result = act(context.watched_by(live), (form,) if form else ("html", "pdf"), name)
    session.present(view(result), ReportFiles.build(result.report, files=result.files))
