"""`runs`: the record of every run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.model.record import RunRecord
from gpucourse.parallel import run_all
from gpucourse.runs.connect import RUNS_AT_ONCE, Connections, group_by_lab
from gpucourse.runs.finish import ask_ahead
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
        ended = [record for record in away if _has_ended(record, connections)]
        for group in group_by_lab(ended) if len(ended) > 1 else ():
            with suppress(GpucourseError):  # reported for each run
                ask_ahead(context, connections.reach_runs(group), group)
        known = {record.id for record in ended}
        others = [record for record in away if record.id not in known]
        looked = run_all([partial(_look, context, record, connections) for record in ended], limit=1)  # as the answers come
        looked += run_all([partial(_look, context, record, connections) for record in others], limit=RUNS_AT_ONCE)
    listed = {record.id: item for record, item in zip([*ended, *others], looked, strict=True)}
    return [listed.get(record.id) or ListedRun(record=record) for record in records], list(errors.values())


def _has_ended(record: RunRecord, connections: Connections) -> bool:
    """Return whether a run had ended on all its nodes at the time of `ask_states`."""
    states = connections.find_states(record) or {}
    return bool(states) and all(state.has_ended for state in states.values())


def _look(context: Context, record: RunRecord, connections: Connections) -> ListedRun:
    try:
        return ListedRun(record=settle(context, record, connections))
    except GpucourseError as error:
        return ListedRun(record=record, detail=error.what)
