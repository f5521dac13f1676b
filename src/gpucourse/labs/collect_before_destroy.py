"""Before a stack is destroyed, ends every run on it and collects the outputs; what has to be given up is named."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted, MissingError, NodeUntrusted, StorageError, UnreachableError
from gpucourse.labs.target import find_target
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import Note
from gpucourse.model.record import RunRecord
from gpucourse.parallel import try_all
from gpucourse.runs import slurm_runs
from gpucourse.runs.connect import RUNS_AT_ONCE, Connections, nodes_of
from gpucourse.runs.end_state import end_state
from gpucourse.runs.finish import finish
from gpucourse.runs.follow import note_exits
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import RunPaths


@dataclass(kw_only=True)
class CollectedRuns:
    """Which runs were collected, and which were given up (with why)."""

    fetched: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)


def bring_home(
    context: Context, deployment: Deployment, *, discard: bool, unreachable: Mapping[str, str] | None = None
) -> CollectedRuns:
    """End and collect every run of the stack that is not collected yet; with `discard` only end them. What is on nodes that
    are known to be `unreachable` (by name, with the reason) is given up.

    A node in the cloud that ended by itself took its outputs along: that is said, and is no error. Raises UnreachableError
    if outputs cannot be fetched and nobody was warned (NodeUntrusted if what the node sends cannot be used),
    MissingError for the record of a run that cannot be read and whose outputs may not be home.
    """
    from gpucourse.remote.patience import DESTROY_S

    home, until = CollectedRuns(), time.monotonic() + DESTROY_S
    records, errors = runs.readable(context.paths)
    if not discard:
        _whole(deployment, errors)
    away = [record for record in records if record.stack == deployment.stack and (not record.collected or _count_later(record))]
    gone = find_target(deployment.target).find_lost_nodes(context, deployment) if away and not discard else {}
    gone |= unreachable or {}
    with Connections(context) as connections:

        def bring(record: RunRecord) -> None:
            own = context if len(away) == 1 else context.with_label(record.id)
            with hold_lock(
                runs.lock_of(context.paths, record.id), f"destroy {deployment.stack}", wait_s=0.0 if discard else 10.0
            ):
                if discard:
                    goes_on = _end_jobs(own, deployment, record, gone, connections)
                    _give_up(own, record, home, f"discarded with --discard{goes_on}")
                else:
                    _fetch(own, deployment, record, home, gone, until, connections)

        ends = try_all([partial(bring, record) for record in away], limit=RUNS_AT_ONCE, on_interrupt=context.stop.set)
    for end in ends:
        if end is not None:
            raise end
    home.fetched.sort()
    home.given_up.sort()
    return home


def _count_later(record: RunRecord) -> int:
    return len(record.slurm.later) if record.slurm else 0


def _whole(deployment: Deployment, errors: Mapping[RunPaths, MissingError]) -> None:
    """Nobody knows where a run took place whose record cannot be read. Its files are sealed once all of them are collected."""
    for files, error in errors.items():
        if not files.hashes.exists():
            raise MissingError(
                f"{error.what}; what that run wrote may not be collected yet",
                hint=f"{error.hint}; or give its outputs up: gpucourse destroy {deployment.module} --discard",
            ) from error


def _fetch(
    context: Context,
    deployment: Deployment,
    record: RunRecord,
    home: CollectedRuns,
    gone: Mapping[str, str],
    until: float,
    connections: Connections,
) -> None:
    from gpucourse.remote.execute import cancel
    from gpucourse.remote.fleet import values
    from gpucourse.remote.follow import follow
    from gpucourse.remote.patience import AFTER_CANCEL_S

    nodes = nodes_of(deployment, record)
    if not nodes or record.state == "planned":
        _give_up(context, record, home, "it never started")
        return
    lost = [gone[node.name] for node in nodes if node.name in gone]
    nodes = tuple(node for node in nodes if node.name not in gone)
    if not nodes:
        _give_up(context, record, home, f"its outputs were lost with its nodes: {'; '.join(lost)}")
        return
    try:
        fleet = connections.reach(deployment, nodes, scheduled=record.slurm is not None)
        if not record.has_ended and record.state != "collecting":
            context.watch(Note(text=f"run {record.id} was still running: stopping it", level="warning"))
        if later := _count_later(record):
            told = f"run {record.id}: ending {later} job{'s' if later > 1 else ''} that its own jobs submitted"
            context.watch(Note(text=told, level="warning"))
        ended = cancel(fleet, record.id)
        if record.slurm is not None and deployment.uses_existing_machines:
            values(ended)  # that cluster stays, and with it every job that did not end
        files, scheduled = runs.files_of(context.paths, record), record.slurm is not None
        result = follow(
            fleet,
            record.id,
            nodes,
            files,
            context.watch,
            context.stop,
            scheduled=scheduled,
            limit_s=AFTER_CANCEL_S,
            until=until,
            log_limit=context.settings.log_limit,
            world_size=record.world_size,
            hosts=slurm_runs.hosts_of(deployment),
        )
        if result.detached:
            raise Interrupted(
                f"run {record.id} is not collected yet", hint=f"gpucourse destroy {deployment.module} collects it"
            )
        note_exits(record, result)
        if record.slurm is not None:
            record.slurm.later, record.collected = [], False  # nothing of them is left to ask for after this
        finish(context, fleet, record, until=until)
        home.fetched.append(record.id)
        home.given_up += [f"{record.id}, one node of it: {why}" for why in lost]
    except StorageError as error:
        raise StorageError(
            f"the outputs of run {record.id} are not collected yet, and {error.what}",
            hint=f"free some space, or give these outputs up: gpucourse destroy {deployment.module} --discard",
        ) from error
    except UnreachableError as error:
        # Whoever followed it was warned then that these nodes are gone; nobody was warned of outputs that cannot be fetched.
        if record.error and record.state != "collecting" and not deployment.costs:
            _give_up(context, record, home, error.what)
            return
        raise _not_home(context, deployment, record, error) from error


def _end_jobs(
    context: Context, deployment: Deployment, record: RunRecord, gone: Mapping[str, str], connections: Connections
) -> str:
    """End what a cluster that stays still has of the run. What may still run there, as an addition to a sentence, where that
    fails."""
    nodes = tuple(node for node in nodes_of(deployment, record) if node.name not in gone)
    over = record.has_ended and not _count_later(record)
    if record.slurm is None or over or not nodes or not deployment.uses_existing_machines:
        return ""
    from gpucourse.remote.execute import cancel
    from gpucourse.remote.fleet import values

    try:
        values(cancel(connections.reach(deployment, nodes, scheduled=True), record.id))
    except GpucourseError as error:
        context.watch(Note(text=f"jobs of run {record.id} may still run in Slurm: {error.what}", level="warning"))
        return f"; its jobs may still run in Slurm ({error.what})"
    return ""


def _not_home(context: Context, deployment: Deployment, record: RunRecord, error: UnreachableError) -> UnreachableError:
    """Why the lab was left standing; in the cloud also what that costs."""
    what = f"the outputs of run {record.id} are not collected yet, and {error.what}"
    discard = f"gpucourse destroy {deployment.module} --discard gives these outputs up"
    kind = NodeUntrusted if isinstance(error, NodeUntrusted) else UnreachableError
    meanwhile, mend = find_target(deployment.target).reach_again(context, deployment)
    return kind(f"{what}{meanwhile}", hint=f"{mend}; {discard}")


def _give_up(context: Context, record: RunRecord, home: CollectedRuns, why: str) -> None:
    if not record.has_ended:
        record.state, record.ended = (end_state(record.node_exits) if record.node_exits else "cancelled"), now_utc()
    record.collected, record.error = True, record.error or why
    if record.slurm is not None:
        record.slurm.later = []
    with suppress(StorageError):  # a full disk must not keep a lab alive
        runs.save(context.paths, record)
    home.given_up.append(f"{record.id}: {why}")
