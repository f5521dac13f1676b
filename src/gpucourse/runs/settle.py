"""Runs without a follower, because they were detached or their terminal is gone: the next command finishes them."""

from __future__ import annotations

import time

from gpucourse.context import Context
from gpucourse.model.record import RunRecord
from gpucourse.runs import follow
from gpucourse.runs.connect import Connections, nodes_of
from gpucourse.runs.finish import deliver
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs, seals
from gpucourse.workspace.lock import try_lock


def settle(context: Context, record: RunRecord, connections: Connections) -> RunRecord:
    """Return the record of a run as it is now. Finish one that ended unattended; leave one under way alone.

    Raises UnreachableError if its nodes do not answer.
    """
    if record.collected:
        return record
    with try_lock(runs.lock_of(context.paths, record.id), f"settle {record.id}") as mine:
        if not mine:  # another process follows it
            return runs.reread(context.paths, record)
        record = _reread(context, record)
        return record if record.collected else _take_up(context, record, connections)


def collect_later(context: Context, record: RunRecord, connections: Connections) -> RunRecord:
    """Return the record of a run that has ended, with the output of jobs that its own jobs had submitted, and with those of
    them that still run. If there were none, no request is sent. Raises UnreachableError, and the error of a Slurm that does not
    answer."""
    if record.slurm is None or not record.slurm.later or not record.collected:
        return record
    with try_lock(runs.lock_of(context.paths, record.id), f"collect {record.id}") as mine:
        record = runs.reread(context.paths, record)
        if not mine or record.slurm is None:
            return record
        from gpucourse.remote.slurm_client import ask_later_jobs

        fleet = connections.reach_run(record)
        record.slurm.later = ask_later_jobs(fleet.link(fleet.nodes[0]), record.id)  # jobs that end later are asked for again
        record.collected = False
        follow.conclude(context, fleet, record)
    return record


def follow_on(
    context: Context, record: RunRecord, connections: Connections, *, limit_s: float | None = None
) -> follow.FollowedRun:
    """Follow a run to its end, whichever process follows it; for `limit_s` at most if it is this process."""
    while True:
        with try_lock(runs.lock_of(context.paths, record.id), f"logs {record.id}") as mine:
            record = _reread(context, record) if mine else runs.reread(context.paths, record)
            if record.collected:
                return follow.FollowedRun(record=record, verdict=follow.read_run_verdict(context, record))
            if mine:
                return follow.follow_to_end(context, connections.reach_run(record), record, limit_s=limit_s)
        time.sleep(0.1)


def _reread(context: Context, record: RunRecord) -> RunRecord:
    """Return the record as it is on disk now. If the command that finished the run was ended in the middle of storing it, do
    the rest first."""
    completed = seals.complete(runs.files_of(context.paths, record))
    record = runs.reread(context.paths, record)
    if completed:
        deliver(context, context.catalog.exercise(record.exercise)[1], record)
    return record


def _take_up(context: Context, record: RunRecord, connections: Connections) -> RunRecord:
    from gpucourse.remote.execute import states

    deployment = deployments.load(context.paths, record.stack)
    if deployment is None or not nodes_of(deployment, record):
        return _mark_lost(context, record, "its nodes are gone")
    fleet = connections.reach_run(record)
    node_states = connections.find_states(record) or states(fleet, record.id)
    begun = [state for state in node_states.values() if state.state != "absent"]
    if not begun:
        return _mark_lost(context, record, "it never started on any node")
    if len(begun) < len(node_states):
        follow.give_up(context, fleet, record, "lost", "its terminal was lost while it started; ended on every node")
        return record
    if record.state in {"planned", "starting"}:
        record.state, record.started = "running", record.started or record.created
        runs.save(context.paths, record)
    if all(state.exit is not None for state in begun):
        follow.follow_to_end(context, fleet, record)
    return record


def _mark_lost(context: Context, record: RunRecord, why: str) -> RunRecord:
    record.state, record.error, record.ended, record.collected = "lost", why, now_utc(), True
    runs.save(context.paths, record)
    return record
