"""`runs`: the record of every run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.model.record import RunRecord
from gpucourse.parallel import run_all
from gpucourse.runs.connect import RUNS_AT_ONCE, Connections
from gpucourse.runs.settle import settle
from gpucourse.workspace import runs


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """One run of the list; `detail` is the reason why its state may be old (a node did not answer)."""

    record: RunRecord
    detail: str = ""


def every_run(context: Context, exercise: str | None = None) -> tuple[list[ListedRun], list[MissingError]]:
    """Return every run, oldest first, and why others cannot be read; first collect those that ended unattended."""
    records, errors = runs.readable(context.paths, exercise)
    away = [record for record in records if not record.collected]
    with Connections(context) as connections:
        if len(away) > 1:
            connections.ask_states(away)
        looked = run_all([partial(_look, context, record, connections) for record in away], limit=RUNS_AT_ONCE)
    listed = {record.id: item for record, item in zip(away, looked, strict=True)}
    return [listed.get(record.id) or ListedRun(record=record) for record in records], list(errors.values())


def _look(context: Context, record: RunRecord, connections: Connections) -> ListedRun:
    try:
        return ListedRun(record=settle(context, record, connections))
    except GpucourseError as error:
        return ListedRun(record=record, detail=error.what)
