"""The command `compare`: shows runs of one exercise or script side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, RunDocument, field
from gpucourse.cli.session import Session
from gpucourse.model.report import Grid


class ComparisonDocument(JsonDocument):
    """The output of `compare`. `labels` maps each run's id to its name in the tables. `files` lists the pictures and the page.
    `conclusion` says what the differences mean. `repeat` is a command that shows how much of the differences is noise, or an
    empty string."""

    exercise: str
    title: str
    mode: str
    labels: dict[str, str]
    records: list[RunDocument] = field(name="runs")
    grids: list[Grid]
    files: list[Path]
    conclusion: str
    repeat: str


def compare(
    session: Session,
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Two or more runs of one exercise or script, or its number or name for the two newest.",
            autocompletion=complete.runs,
        ),
    ],
) -> None:
    """Compare runs of one exercise, or of one script."""
    from gpucourse.learning.compare import compare as act
    from gpucourse.ui.views.compare import compare as view

    with session.console.watch() as live:
        result = act(session.look().watched_by(live), runs)
    session.present(view(result), ComparisonDocument.build(result), place="")
