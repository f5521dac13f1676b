"""End every run on a stack and collect its outputs before the stack is destroyed. List the outputs that cannot be collected."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted, MissingError, NodeUntrusted, StorageError, UnreachableError
from gpucourse.labs.target import find_target
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import Note, Watcher
from gpucourse.model.record import RunRecord, find_end_state
from gpucourse.parallel import try_all
from gpucourse.remote.fleet import Fleet
from gpucourse.runs.connect import RUNS_AT_ONCE, Connections, nodes_of
from gpucourse.runs.finish import finish
from gpucourse.runs.follow import make_job, note_exits
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

LABS_AT_ONCE = 4
"""The number of labs that are taken down in parallel: Terraform needs a few hundred megabytes per stack in the cloud."""
MAX_LOCK_WAIT_S = 10.0
"""The longest wait, in seconds, for another command that works on a run."""


@dataclass(kw_only=True)
class CollectedRuns:
    """The runs that were collected, and the runs whose outputs were given up, with the reasons."""

    fetched: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)


def find_ending(paths: WorkspacePaths, deployment: Deployment, removed_nodes: Collection[str]) -> tuple[RunRecord, ...]:
    """Return the runs on these nodes whose end has not been recorded."""
    active = runs.list_unfinished(paths, deployment.stack)
    return tuple(record for record in active if _is_on(record, removed_nodes))


def _is_on(record: RunRecord, nodes: Collection[str]) -> bool:
    """Return whether the run is, or may be, on any of these nodes. The record does not say which nodes Slurm chose."""
    return bool(nodes) and (record.slurm is not None or any(name in nodes for name in record.nodes))


def collect_runs(
    context: Context,
    deployment: Deployment,
    *,
    discard: bool,
    unreachable: Mapping[str, str] | None = None,
    removed_nodes: Collection[str] | None = None,
) -> CollectedRuns:
    """End and collect every run of the stack that has not been collected yet; with `discard`, only end them. Return which were
    collected.

    `unreachable`: nodes whose outputs are given up, by name, with the reason.
    `removed_nodes`: collect only runs on these nodes.

    The outputs on a cloud node that ended by itself are lost; that is reported, but is not an error. Raises UnreachableError if
    outputs cannot be fetched and the user has not been warned of this. Raises NodeUntrusted if a node sends data that cannot be
    used. Raises MissingError if the record of a run cannot be read and its outputs may not have been collected.
    """
    from gpucourse.remote.patience import DESTROY_S

    until = time.monotonic() + DESTROY_S
    records, errors = runs.readable(context.paths)
    if not discard:
        _check_unreadable(deployment, errors)
    uncollected = [
        record
        for record in records
        if record.stack == deployment.stack
        and (not record.collected or _count_later(record))
        and (removed_nodes is None or _is_on(record, removed_nodes))
    ]
    lost_nodes = find_target(deployment.target).find_lost_nodes(context, deployment) if uncollected and not discard else {}
    lost_nodes |= unreachable or {}
    with Connections(context) as connections:
        collecting = _Collector(
            context=context,
            deployment=deployment,
            lost_nodes=lost_nodes,
            until=until,
            connections=connections,
            labels=len(uncollected) > 1,
        )
        work = collecting.discard if discard else collecting.collect
        ends = try_all([partial(work, record) for record in uncollected], limit=RUNS_AT_ONCE, on_interrupt=context.stop.set)
    for end in ends:
        if end is not None:
            raise end
    outcome = collecting.outcome
    outcome.fetched.sort()
    outcome.given_up.sort()
    return outcome


@dataclass(kw_only=True)
class _Collector:
    """Collect the runs of one stack.

    `lost_nodes`: nodes that cannot be reached, with the reason.
    `labels`: start each message about a run with the run's id.
    """

    context: Context
    deployment: Deployment
    lost_nodes: Mapping[str, str]
    until: float
    connections: Connections
    labels: bool
    outcome: CollectedRuns = field(default_factory=CollectedRuns)

    def discard(self, record: RunRecord) -> None:
        """End one run and give up its outputs."""
        with self._hold(record, wait_s=0.0):
            remainder = _end_jobs(self._label(record).watch, self.deployment, record, self.lost_nodes, self.connections)
            _give_up(self.context.paths, record, self.outcome, f"discarded with --discard{remainder}")

    def collect(self, record: RunRecord) -> None:
        """End one run and collect its outputs."""
        with self._hold(record, wait_s=MAX_LOCK_WAIT_S):
            self._fetch(record)

    def _hold(self, record: RunRecord, *, wait_s: float) -> AbstractContextManager[int]:
        return hold_lock(runs.lock_of(self.context.paths, record.id), f"destroy {self.deployment.stack}", wait_s=wait_s)

    def _label(self, record: RunRecord) -> Context:
        return self.context.with_label(record.id) if self.labels else self.context

    def _fetch(self, record: RunRecord) -> None:
        from gpucourse.remote.follow import FollowTimes, follow
        from gpucourse.remote.patience import AFTER_CANCEL_S

        context, deployment, outcome = self._label(record), self.deployment, self.outcome
        nodes = nodes_of(deployment, record)
        if not nodes or record.state == "planned":
            _give_up(context.paths, record, outcome, "it never started")
            return
        reasons = [self.lost_nodes[node.name] for node in nodes if node.name in self.lost_nodes]
        nodes = tuple(node for node in nodes if node.name not in self.lost_nodes)
        if not nodes:
            _give_up(context.paths, record, outcome, f"its outputs were lost with its nodes: {'; '.join(reasons)}")
            return
        try:
            fleet = self.connections.reach(deployment, nodes, scheduled=record.slurm is not None)
            self._end(context, fleet, record)
            times = FollowTimes(limit_s=AFTER_CANCEL_S, until=self.until)
            result = follow(fleet, make_job(context, record, nodes), context.watch, context.stop, times)
            if result.detached:
                raise Interrupted(
                    f"run {record.id} is not collected yet", hint=f"gpucourse destroy {deployment.module} collects it"
                )
            note_exits(record, result)
            if record.slurm is not None:
                record.slurm.later, record.collected = [], False  # after this, nothing is left to collect
            finish(context, fleet, record, until=self.until)
            outcome.fetched.append(record.id)
            outcome.given_up += [f"{record.id}, one of its nodes: {reason}" for reason in reasons]
        except StorageError as error:
            raise StorageError(
                f"the outputs of run {record.id} are not collected yet, and {error.what}",
                hint=f"free some space, or give up these outputs: gpucourse destroy {deployment.module} --discard",
            ) from error
        except UnreachableError as error:
            # The user was warned about these lost nodes while following the run, but not about outputs that cannot be fetched.
            if record.error and record.state != "collecting" and not deployment.costs:
                _give_up(context.paths, record, outcome, error.what)
                return
            raise _make_uncollected_error(context, deployment, record, error) from error

    def _end(self, context: Context, fleet: Fleet, record: RunRecord) -> None:
        """Cancel the run on these nodes. Raises an error if the cluster outlives the lab and a job did not end."""
        from gpucourse.remote.execute import cancel
        from gpucourse.remote.fleet import values

        _report_end(context.watch, record)
        results = cancel(fleet, record.id)
        if record.slurm is not None and self.deployment.uses_existing_machines:
            values(results)


def _count_later(record: RunRecord) -> int:
    return len(record.slurm.later) if record.slurm else 0


def _check_unreadable(deployment: Deployment, errors: Mapping[RunPaths, MissingError]) -> None:
    """Check that runs with unreadable records have been collected. Raises MissingError for a run without a seal.

    It is unknown which nodes such a run used, but every run is sealed once all its outputs are collected.
    """
    for files, error in errors.items():
        if not files.hashes.exists():
            raise MissingError(
                f"{error.what}; what that run wrote may not have been collected yet",
                hint=f"{error.hint}; or give up its outputs: gpucourse destroy {deployment.module} --discard",
            ) from error


def _report_end(watch: Watcher, record: RunRecord) -> None:
    if not record.has_ended and record.state != "collecting":
        watch(Note(text=f"run {record.id} was still running: stopping it", level="warning"))
    if job_count := _count_later(record):
        text = f"run {record.id}: ending {job_count} job{'s' if job_count > 1 else ''} that its own jobs submitted"
        watch(Note(text=text, level="warning"))


def _end_jobs(
    watch: Watcher, deployment: Deployment, record: RunRecord, lost_nodes: Mapping[str, str], connections: Connections
) -> str:
    """End the run's jobs on a cluster that outlives the lab. If that fails, return a clause that says which jobs may still
    run."""
    nodes = tuple(node for node in nodes_of(deployment, record) if node.name not in lost_nodes)
    is_over = record.has_ended and not _count_later(record)
    if record.slurm is None or is_over or not nodes or not deployment.uses_existing_machines:
        return ""
    from gpucourse.remote.execute import cancel
    from gpucourse.remote.fleet import values

    try:
        values(cancel(connections.reach(deployment, nodes, scheduled=True), record.id))
    except GpucourseError as error:
        watch(Note(text=f"jobs of run {record.id} may still run in Slurm: {error.what}", level="warning"))
        return f"; its jobs may still run in Slurm ({error.what})"
    return ""


def _make_uncollected_error(
    context: Context, deployment: Deployment, record: RunRecord, error: UnreachableError
) -> UnreachableError:
    """Return the error that says why the lab was left unchanged and, in the cloud, how much that costs."""
    problem = f"the outputs of run {record.id} are not collected yet, and {error.what}"
    discard = f"gpucourse destroy {deployment.module} --discard gives up these outputs"
    kind = NodeUntrusted if isinstance(error, NodeUntrusted) else UnreachableError
    meanwhile, mend = find_target(deployment.target).advise_on_unreachable(context, deployment)
    return kind(f"{problem}{meanwhile}", hint=f"{mend}; {discard}")


def _give_up(paths: WorkspacePaths, record: RunRecord, outcome: CollectedRuns, reason: str) -> None:
    if not record.has_ended:
        record.state, record.ended = (find_end_state(record.node_exits) if record.node_exits else "cancelled"), now_utc()
    record.collected, record.error = True, record.error or reason
    if record.slurm is not None:
        record.slurm.later = []
    for node in record.nodes:  # data that a killed command fetched, and that no command will fetch again
        shutil.rmtree(runs.files_of(paths, record).transfer(node), ignore_errors=True)
    with suppress(StorageError):  # a full disk must not keep a lab alive
        runs.save(paths, record)
    outcome.given_up.append(f"{record.id}: {reason}")
