"""The command `runs`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument, RunDocument
from gpucourse.cli.session import Session


class ListedRunDocument(RunDocument):
    """A run in the list; `detail` says why its state may be outdated."""

    detail: str


class Runs(JsonDocument):
    """The output of `runs`: all runs, the oldest first."""

    runs: list[ListedRunDocument]


def runs(
    session: Session,
    exercise: Annotated[
        str | None, typer.Argument(help="Only the runs of this exercise.", autocompletion=complete.exercises)
    ] = None,
) -> None:
    """List the records of all runs."""
    from gpucourse.runs.settle import list_settled_runs
    from gpucourse.ui.views.run import runs as view

    rows, damaged = list_settled_runs(session.look(), exercise)
    session.present(view(rows), Runs(runs=[ListedRunDocument.build(item.record, detail=item.detail) for item in rows]))
    if damaged:
        raise damaged[0]
