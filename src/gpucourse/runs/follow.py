"""Follow the logs of a run that is under way. When the run has ended, collect its outputs and judge it.

Only the command that holds the run's lock does this; all other commands read the same files on disk. A run without a follower
simply continues, and the next command that follows it resumes at the end of the stored logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted, NodeUntrusted, StorageError, UnreachableError
from gpucourse.model.event import SilentRanks, stage
from gpucourse.model.node import Node, is_simulated
from gpucourse.model.record import RunRecord, RunState
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs import diagnose, slurm
from gpucourse.runs.finish import finish
from gpucourse.units import later, now_utc
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import read_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.follow import FollowBroken, FollowedJob, FollowResult


# How long a node may be unreachable before the follower gives up. A sleeping laptop comes back; a dead process does not.
GIVE_UP_S, GIVE_UP_SIMULATED_S = 60.0, 8.0
NAMED = 3  # a title names at most this many nodes; for more, it shows their number


@dataclass(frozen=True, kw_only=True)
class FollowedRun:
    """A run that has ended. `verdict`: None if the run did not succeed."""

    record: RunRecord
    verdict: ExerciseVerdict | None


def read_run_verdict(paths: WorkspacePaths, record: RunRecord) -> ExerciseVerdict | None:
    """Return the verdict that was stored with the run, or None if there is none."""
    return read_record(runs.files_of(paths, record).verdict, ExerciseVerdict)


def follow_to_end(context: Context, fleet: Fleet, record: RunRecord, *, limit_s: float | None = None) -> FollowedRun:
    """Follow the run until it ends, finish it, and return it with its verdict.

    Raises Interrupted if the user presses Ctrl-C (the run then continues), StorageError if the logs cannot be stored,
    and UnreachableError if nodes stop answering or outputs cannot be collected (see `conclude`).

    Following ends some minutes after the run's own time limit, or after `limit_s`: see `remote.patience`.
    """
    _follow(context, fleet, record, limit_s)
    return conclude(context, fleet, record)


def conclude(context: Context, fleet: Fleet, record: RunRecord) -> FollowedRun:
    """Collect the outputs of an ended run, judge it, and return it with its verdict.

    Raises Interrupted if the user presses Ctrl-C, and UnreachableError if a node's outputs cannot be collected. The next
    command about the run then tries again.
    """
    problem, hint = (
        f"run {record.id} has ended, but not all of its outputs are collected yet",
        f"gpucourse logs {record.id} collects the rest",
    )
    try:
        verdict = finish(context, fleet, record)
    except KeyboardInterrupt as error:
        raise Interrupted(problem, hint=hint) from error
    except UnreachableError as error:
        kind = NodeUntrusted if isinstance(error, NodeUntrusted) else UnreachableError
        discard = f"gpucourse destroy {record.module} --discard destroys the lab without these outputs"
        raise kind(f"{problem}: {error.what}", hint=f"{hint}; {discard}") from error
    return FollowedRun(record=record, verdict=verdict)


def _follow(context: Context, fleet: Fleet, record: RunRecord, limit_s: float | None) -> None:
    """Store the run's logs and exit codes. Raises Interrupted, UnreachableError or StorageError; in each case, the run
    continues.
    """
    from gpucourse.remote.follow import FollowBroken, FollowTimes, follow
    from gpucourse.remote.patience import AFTER_LIMIT_S
    from gpucourse.remote.silence import SilenceMonitor

    files = runs.files_of(context.paths, record)
    plan = diagnose.read_plan(files)
    if limit_s is None and record.slurm is None and plan.timeout_s is not None:  # a job may wait in the queue for days
        limit_s = plan.timeout_s + AFTER_LIMIT_S
    try:
        activity = f"running {record.subject} on {name_nodes(record.nodes)}"
        silence = ""
        with context.guard("tell why nothing is printed yet"):
            silence = _explain_silence(context.catalog, record)
        with stage(context.watch, "run", activity, record.phases_s, silence=silence):
            with context.guard("tell which ranks have printed nothing"):
                context.watch(find_silent_ranks(record, files))
            give_up_s = GIVE_UP_SIMULATED_S if is_simulated(record.mode) else GIVE_UP_S
            result = follow(
                fleet,
                make_job(context, record, fleet.nodes),
                context.watch,
                context.stop,
                FollowTimes(limit_s=limit_s, give_up_s=give_up_s),
                # A job that waits in the queue is silent for a good reason.
                monitor=SilenceMonitor(plan.ranks, record.silence_s if record.slurm is None else None),
                guard=context.guard,
            )
    except (KeyboardInterrupt, Interrupted) as error:
        raise _make_detach_error(record) from error
    except FollowBroken as error:
        raise _cut_off(context, record, error) from error
    except StorageError as error:
        raise StorageError(
            f"{error.what}; the run itself continues",
            hint=f"free some space, then gpucourse logs {record.id} -f continues where it stopped",
        ) from error
    if result.detached:
        raise _make_detach_error(record)
    note_exits(record, result)


def make_job(context: Context, record: RunRecord, nodes: Sequence[Node]) -> FollowedJob:
    """Return the description of a run on these nodes that `remote` needs to follow it."""
    from gpucourse.remote.follow import FollowedJob

    return FollowedJob(
        run_id=record.id,
        nodes=nodes,
        paths=runs.files_of(context.paths, record),
        log_limit=context.settings.log_limit,
        world_size=record.world_size,
        max_restarts=record.max_restarts,
        skew_s=record.clock_skew_s,
        scheduled=record.slurm is not None,
        hosts=slurm.hosts_of(deployments.load(context.paths, record.stack)),
    )


def find_silent_ranks(record: RunRecord, files: RunPaths) -> SilentRanks:
    """Return the ranks without any output so far; none under Slurm, where a job may wait in the queue."""
    if record.slurm is not None:
        return SilentRanks(ranks={})
    speakers = {speaker for speaker, log in files.all_logs().items() if log.lstat().st_size}
    planned_ranks = diagnose.read_plan(files).ranks
    return SilentRanks(ranks={node: [r for r in ranks if (node, r) not in speakers] for node, ranks in planned_ranks.items()})


def name_nodes(names: Sequence[str]) -> str:
    """Return the nodes of a run for a title: the names of a few nodes, or the number of many."""
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} nodes"


def _explain_silence(catalog: Catalog, record: RunRecord) -> str:
    """Return the note that torch is imported first. Return an empty string if the run is a Slurm job or of the learner's own
    script, or if the exercise does not use torch."""
    if record.slurm is not None:
        return ""
    packages = catalog.exercise(record.exercise)[1].packages
    return "no output yet; torch is imported first" if record.own_script is None and "torch" in packages else ""


def note_exits(record: RunRecord, result: FollowResult) -> None:
    """Record how nodes and ranks ended."""
    _note_progress(record, result)
    if record.slurm is not None:
        record.slurm.jobs, record.slurm.later = list(result.jobs), list(result.later_jobs)
    ended_by_us = bool(result.node_exits) and all(end.reason in {"timed_out", "cancelled"} for end in result.node_exits)
    record.first_failure = None if ended_by_us else result.first_failure
    record.full_logs = list(result.full_logs)
    record.ended = now_utc()
    if record.started and result.node_exits and all(end.seconds is not None for end in result.node_exits):
        # The run ended when its last node did, even if that is recorded much later.
        record.ended = later(record.started, max(end.seconds or 0.0 for end in result.node_exits))


def _note_progress(record: RunRecord, result: FollowResult) -> None:
    record.node_exits, record.rank_exits = list(result.node_exits), list(result.rank_exits)
    record.restarts, record.silences = result.restarts, list(result.silences)


def give_up(paths: WorkspacePaths, fleet: Fleet, record: RunRecord, state: RunState, reason: str) -> None:
    """End a run that did not start on all its nodes, so that nothing of it is left on nodes that answer."""
    from gpucourse.remote.execute import cancel

    cancel(fleet, record.id)
    record.state, record.error, record.ended, record.collected = state, reason, now_utc(), True
    runs.save(paths, record)


def _cut_off(context: Context, record: RunRecord, error: FollowBroken) -> UnreachableError:
    """Store the progress of a run whose nodes stopped answering; return the error.

    The run may still continue on the nodes, so it is not judged.
    """
    _note_progress(record, error.result)
    record.first_failure, record.error = error.result.first_failure, error.what
    with context.guard("name the cause of the failure"):
        record.diagnoses = diagnose.diagnose(context.paths, record, loss=error.what)
    runs.save(context.paths, record)
    return UnreachableError(
        f"run {record.id} could not be followed to its end: {error.what}",
        hint=f"gpucourse status shows which nodes are alive; gpucourse deploy {record.module} repairs them; "
        f"then gpucourse logs {record.id} -f follows it again",
    )


def _make_detach_error(record: RunRecord) -> GpucourseError:
    return Interrupted(
        f"detached; run {record.id} keeps running",
        hint=f"gpucourse logs {record.id} -f follows it\ngpucourse cancel {record.id} stops it",
    )
