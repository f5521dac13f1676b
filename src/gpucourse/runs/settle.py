"""Finish runs that have no follower, because they were detached or their terminal is gone.

The next command about such a run finishes it. `runs` finishes all of them; `cancel` ends one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError, UsageError
from gpucourse.model.record import RunRecord
from gpucourse.parallel import run_all
from gpucourse.runs import follow, slurm
from gpucourse.runs.connect import RUNS_AT_ONCE, Connections, nodes_of
from gpucourse.runs.finish import deliver
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs, seals
from gpucourse.workspace.lock import try_lock
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.remote.answers import JobState


def settle(context: Context, record: RunRecord, connections: Connections, job_state: JobState | None = None) -> RunRecord:
    """Return the current record of a run. If the run ended unattended, finish it; if it is under way, leave it alone.

    `job_state`: the state of a run under Slurm, if it is known already.

    Raises UnreachableError if its nodes do not answer.
    """
    if record.collected:
        return record
    with try_lock(runs.lock_of(context.paths, record.id), f"settle {record.id}") as has_lock:
        if not has_lock:  # another process follows it
            return runs.reread(context.paths, record)
        record = _reread(context, record)
        return record if record.collected else _take_up(context, record, connections, job_state)


def collect_later(context: Context, record: RunRecord, connections: Connections) -> RunRecord:
    """Collect the output of further jobs that an ended run's jobs submitted; return the run's record.

    The record lists the jobs that are still running. Without such jobs, no request is sent. Raises UnreachableError, and
    Slurm's error if Slurm does not answer.
    """
    if record.slurm is None or not record.slurm.later or not record.collected:
        return record
    with try_lock(runs.lock_of(context.paths, record.id), f"collect {record.id}") as has_lock:
        record = runs.reread(context.paths, record)
        if not has_lock or record.slurm is None:
            return record
        from gpucourse.remote.slurm_client import ask_later_jobs

        fleet = connections.reach_run(record)
        record.slurm.later = ask_later_jobs(
            fleet.link(fleet.nodes[0]), record.id
        )  # later calls ask again about jobs that still run
        record.collected = False
        follow.conclude(context, fleet, record)
    return record


def follow_on(
    context: Context, record: RunRecord, connections: Connections, *, limit_s: float | None = None
) -> follow.FollowedRun:
    """Follow a run until it ends, even if another process follows it too, and return it with its verdict.

    `limit_s`: the time limit if this process is the follower.
    """
    while True:
        with try_lock(runs.lock_of(context.paths, record.id), f"logs {record.id}") as has_lock:
            record = _reread(context, record) if has_lock else runs.reread(context.paths, record)
            if record.collected:
                return follow.FollowedRun(record=record, verdict=follow.read_run_verdict(context.paths, record))
            if has_lock:
                return follow.follow_to_end(context, connections.reach_run(record), record, limit_s=limit_s)
        time.sleep(0.1)


def _reread(context: Context, record: RunRecord) -> RunRecord:
    """Return the record as it is on disk now. If a command was killed while it stored the results, finish storing them
    first."""
    completed = seals.complete(runs.files_of(context.paths, record))
    record = runs.reread(context.paths, record)
    if completed:
        deliver(context.paths, context.catalog.exercise(record.exercise)[1], record)
    return record


def ask_clusters(records: Sequence[RunRecord], connections: Connections) -> dict[str, JobState]:
    """Return the states of runs under Slurm, by their ids, with one request for all runs of a lab.

    Runs that are not under Slurm are left out, and so are runs about which a cluster reports nothing.
    """
    from gpucourse.remote import jobs

    by_lab: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records:
        if record.slurm is not None and not record.collected:
            by_lab.setdefault((record.stack, *record.nodes), []).append(record)
    states: dict[str, JobState] = {}
    for group in by_lab.values():
        with suppress(GpucourseError):  # each of these runs then sends a request of its own, and reports the error
            fleet = connections.reach_run(group[0])
            for start in range(0, len(group), jobs.RUNS_IN_REQUEST):
                run_ids = [record.id for record in group[start : start + jobs.RUNS_IN_REQUEST]]
                states |= jobs.states(fleet.link(fleet.nodes[0]), run_ids)
    return states


def describe_waits(records: Sequence[RunRecord], connections: Connections) -> dict[str, str]:
    """Ask the clusters of these runs. For each run whose jobs have not started, return why it is waiting, by the run's id."""
    states = ask_clusters(records, connections)
    waits: dict[str, str] = {}
    for record in records:
        if record.slurm is not None and record.id in states:
            slurm_run = replace(record.slurm, jobs=states[record.id].jobs)
            waits[record.id] = slurm.describe_wait(replace(record, slurm=slurm_run))
    return {run_id: text for run_id, text in waits.items() if text}


def _take_up(context: Context, record: RunRecord, connections: Connections, job_state: JobState | None) -> RunRecord:
    from gpucourse.remote.execute import states

    deployment = deployments.load(context.paths, record.stack)
    if deployment is None or not nodes_of(deployment, record):
        return _mark_lost(context.paths, record, "its nodes are gone")
    fleet = connections.reach_run(record)
    if job_state is not None and job_state.state != "absent":  # a run that is absent may have begun in the meantime
        node_states = {fleet.nodes[0].name: job_state}
    else:
        node_states = states(fleet, record.id)
    active = [state for state in node_states.values() if state.state != "absent"]
    if not active:
        return _mark_lost(context.paths, record, "it never started on any node")
    if len(active) < len(node_states):
        reason = "the terminal was lost while the run started, so the run was ended on every node"
        follow.give_up(context.paths, fleet, record, "lost", reason)
        return record
    if record.state in {"planned", "starting"}:
        record.state, record.started = "running", record.started or record.created
        runs.save(context.paths, record)
    if all(state.exit is not None for state in active):
        follow.follow_to_end(context, fleet, record)
    elif record.slurm is not None and active[0].jobs and record.slurm.jobs != active[0].jobs:
        record.slurm.jobs = list(active[0].jobs)
        runs.save(context.paths, record)
    return record


def _mark_lost(paths: WorkspacePaths, record: RunRecord, reason: str) -> RunRecord:
    record.state, record.error, record.ended, record.collected = "lost", reason, now_utc(), True
    runs.save(paths, record)
    return record


def cancel(context: Context, record: RunRecord) -> RunRecord:
    """End a run on every node, with the jobs that its own jobs submitted, and collect its outputs. Return its new record.

    Raises UsageError if the run and all these jobs have already ended, and another error if no node was reached or Slurm
    refused.
    """
    from gpucourse.remote.execute import cancel as cancel_on
    from gpucourse.remote.fleet import combine_errors
    from gpucourse.remote.patience import AFTER_CANCEL_S

    with Connections(context) as connections:
        record = collect_later(context, settle(context, record, connections), connections)
        if record.has_ended and not (record.slurm and record.slurm.later):
            raise UsageError(f"run {record.id} has ended already: {record.state}", hint=f"gpucourse logs {record.id}")
        outcomes = cancel_on(connections.reach_run(record), record.id)
        failures = [outcome for outcome in outcomes if outcome.error is not None]
        if failures and len(failures) == len(outcomes):  # nothing was ended, so waiting for the end would never finish
            raise combine_errors(failures, of=len(outcomes))
        if record.has_ended:
            return collect_later(context, record, connections)
        # The process that follows the run sees it end and finishes it; if there is none, this process does.
        return follow_on(context, record, connections, limit_s=AFTER_CANCEL_S).record


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """One run of the list. `detail`: why its state may be out of date, for example because a node did not answer."""

    record: RunRecord
    detail: str = ""


def list_settled_runs(context: Context, exercise: str | None = None) -> tuple[list[ListedRun], list[MissingError]]:
    """Collect the runs that ended unattended. Return every run, oldest first, and the reasons why some cannot be read."""
    records, errors = runs.readable(context.paths, exercise)
    open_records = [record for record in records if not record.collected]
    with Connections(context) as connections:
        states = ask_clusters(open_records, connections)
        tasks = [partial(_look, context, record, connections, states.get(record.id)) for record in open_records]
        looks = run_all(tasks, limit=RUNS_AT_ONCE)
    looks_by_record = {record.id: item for record, item in zip(open_records, looks, strict=True)}
    return [looks_by_record.get(record.id) or ListedRun(record=record) for record in records], list(errors.values())


def _look(context: Context, record: RunRecord, connections: Connections, job_state: JobState | None) -> ListedRun:
    try:
        settled = settle(context, record, connections, job_state)
        return ListedRun(record=settled, detail=slurm.describe_wait(settled))
    except GpucourseError as error:
        return ListedRun(record=record, detail=error.what)
