"""`runs`: the record of every run."""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.model.record import RunRecord
from gpucourse.runs.settle import settle
from gpucourse.workspace import runs


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """One run of the list; `detail` says why its state may be old (a node did not answer)."""

    record: RunRecord
    detail: str = ""


def every_run(context: Context, exercise: str | None = None) -> tuple[list[ListedRun], list[MissingError]]:
    """Every run, oldest first, and why others cannot be read; those that ended unattended are collected first."""
    records, errors = runs.readable(context.paths, exercise)
    return [_look(context, record) for record in records], list(errors.values())


def _look(context: Context, record: RunRecord) -> ListedRun:
    if record.collected:
        return ListedRun(record=record)
    try:
        return ListedRun(record=settle(context, record))
    except GpucourseError as error:
        return ListedRun(record=record, detail=error.what)
