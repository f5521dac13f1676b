"""`cancel`: ends a run on every node, and collects what it wrote."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.model.record import RunRecord
from gpucourse.runs.connect import Connections
from gpucourse.runs.settle import collect_later, follow_on, settle


def cancel(context: Context, record: RunRecord) -> RunRecord:
    """End a run on every node, with the jobs that its own jobs submitted, and collect what it wrote. Raises UsageError if all
    of it has ended already, and the error of a cancel that reached no node, or that Slurm did not accept."""
    from gpucourse.remote.execute import cancel as cancel_on
    from gpucourse.remote.fleet import combine_errors
    from gpucourse.remote.patience import AFTER_CANCEL_S

    with Connections(context) as connections:
        record = collect_later(context, settle(context, record, connections), connections)
        if record.has_ended and not (record.slurm and record.slurm.later):
            raise UsageError(f"run {record.id} has ended already: {record.state}", hint=f"gpucourse logs {record.id}")
        outcomes = cancel_on(connections.reach_run(record), record.id)
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        if failed and len(failed) == len(outcomes):  # nothing ends: waiting for its end would never finish
            raise combine_errors(failed, of=len(outcomes))
        if record.has_ended:
            return collect_later(context, record, connections)
        # The process that follows the run sees it end and finishes it; if there is none, this process does.
        return follow_on(context, record, connections, limit_s=AFTER_CANCEL_S).record
