"""Open a terminal on a node that Slurm allocates: prepare it, watch it, and check afterwards that the node was returned.

The console runs the terminal. `open_session` returns the command to start in it, and `close_session` records the transcript.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import ExerciseFailed, GpucourseError
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import stage
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import NodeExit, RunRecord
from gpucourse.model.slurm import JobRow, SlurmSession
from gpucourse.runs import follow, slurm
from gpucourse.runs.prepare import plan_run
from gpucourse.runs.resolve import ResolvedRun
from gpucourse.runs.run import new_record
from gpucourse.storage import write_text
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.slurm_client import SessionState

_GONE_S = 30.0
_LOOK_S = (0.3, 5.0)


@dataclass
class OpenSession:
    """A session that is ready to begin.

    `argv`: the command that starts it in a terminal.
    `command_line`: the command that a person would type on the head.
    """

    record: RunRecord
    argv: tuple[str, ...]
    command_line: str
    fleet: Fleet
    gpus: int = 0
    start_s: float = field(default_factory=time.monotonic)


@contextmanager
def open_session(context: Context, run: ResolvedRun) -> Iterator[OpenSession]:
    """Copy the files to the cluster, create the record, and yield the session. The job is watched during the block."""
    from gpucourse.remote.slurm_client import lay_out, session

    with plan_run(context, run) as plan_in_folder:
        plan, deployment, fleet = plan_in_folder.plan, plan_in_folder.deployment, plan_in_folder.fleet
        run_id = runs.new_run(context.paths, plan.exercise)
        with hold_lock(runs.lock_of(context.paths, run_id), f"run {plan.exercise}"):
            named_plan = _name_plan(plan, run_id)
            record = new_record(context, run, deployment, named_plan)
            lay_out(fleet, named_plan)
            record.state, record.started = "running", now_utc()
            runs.save(context.paths, record)
            place = session(fleet.link(fleet.nodes[0]), run_id)
            open_session = OpenSession(
                record=record,
                argv=_terminal(context.paths, deployment, named_plan, place),
                command_line=shlex.join(named_plan.commands[0].argv),
                fleet=fleet,
            )
            end_event = threading.Event()
            watcher = threading.Thread(target=_watch, args=(open_session, end_event), name="slurm-session", daemon=True)
            watcher.start()
            try:
                yield open_session
            finally:
                end_event.set()
                watcher.join(10.0)


def close_session(context: Context, open_session: OpenSession, transcript: str) -> follow.FollowedRun:
    """Prove that the GPU is free again, store the transcript as plain text, collect the outputs, and return the judged
    session."""
    record, files = open_session.record, runs.files_of(context.paths, open_session.record)
    write_text(files.transcript, transcript)
    with stage(context.watch, "release", "asking Slurm whether the GPU is free again", record.phases_s):
        last = _wait_until_gone(open_session)
    if last is None or record.slurm is None:
        record.state, record.error, record.ended, record.collected = "failed", "Slurm allocated no node", now_utc(), True
        runs.save(context.paths, record)
        raise ExerciseFailed(
            f"run {record.id}: the session never began, because Slurm allocated no node",
            hint=f"the output of srun is in {files.transcript}",
        )
    has_ended = slurm.has_ended(last)
    record.slurm.jobs = [last]
    record.slurm.held = SlurmSession(
        gpus_held=open_session.gpus,
        gpus_after=0 if has_ended else open_session.gpus,
        held_s=last.ran_s or time.monotonic() - open_session.start_s,
    )
    reason = slurm.ending_of(last)
    code = {"timed_out": 124, "lost": 137, "cancelled": 143}.get(reason, 0)
    seconds = round(time.monotonic() - open_session.start_s, 3)
    node_exit = NodeExit(node=record.nodes[0], code=code, reason=reason, seconds=seconds)
    record.node_exits, record.ended = [node_exit], now_utc()
    return follow.conclude(context, open_session.fleet, record)


def _name_plan(plan: LaunchPlan, run_id: str) -> LaunchPlan:
    """Return the plan with a name for its run. squeue shows this name, and the job is found by it."""
    name = f"{plan.exercise}-{run_id.rsplit('-', 1)[-1]}"
    command = replace(plan.commands[0], env={**plan.commands[0].env, "SLURM_JOB_NAME": name})
    if plan.batch is None:
        raise AssertionError(plan.launcher)
    batch = replace(plan.batch, files=(replace(plan.batch.files[0], name=name),))
    return replace(plan, run_id=run_id, batch=batch, commands=(command,))


def _terminal(paths: WorkspacePaths, deployment: Deployment, plan: LaunchPlan, place: SessionState) -> tuple[str, ...]:
    """Return the words that open a terminal on the node, enter the run's folder, set its environment, and start srun."""
    from gpucourse.remote.transport import list_terminal_words

    command = plan.commands[0]
    environ = {**place.places, **command.env, "GPUCOURSE_OUT": place.outputs}
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environ.items())
    folder = command.node.python.rpartition("/")[0]  # so that `python` is the Python with the course's packages
    path = f'PATH={shlex.quote(folder)}:"$PATH"' if folder else ""
    line = f"cd {shlex.quote(place.work)} && export {exports} {path} && exec {shlex.join(command.argv)}"
    config = paths.stack(deployment.stack).ssh_config
    return tuple(list_terminal_words(command.node, config, f"exec /bin/sh -c {shlex.quote(line)}", terminal=True))


def _watch(open_session: OpenSession, end_event: threading.Event) -> None:
    """Query Slurm until the job has a GPU, or the session is over. A query that fails is repeated."""
    from gpucourse.remote.slurm_client import session

    nap = _LOOK_S[0]
    while not end_event.wait(nap):
        nap = min(nap * 1.5, _LOOK_S[1])
        try:
            state = session(open_session.fleet.link(open_session.fleet.nodes[0]), open_session.record.id)
        except GpucourseError:
            continue
        if state.row is not None:
            open_session.gpus = max(open_session.gpus, state.gpus)
            if open_session.gpus:
                return


def _wait_until_gone(open_session: OpenSession) -> JobRow | None:
    """Return the job's row once the job has ended, or when time is up. Return None if there never was a job."""
    from gpucourse.remote.slurm_client import session

    deadline, nap = time.monotonic() + _GONE_S, 0.1
    while True:
        state = session(open_session.fleet.link(open_session.fleet.nodes[0]), open_session.record.id)
        if state.row is None or slurm.has_ended(state.row) or time.monotonic() > deadline:
            return state.row
        time.sleep(nap)
        nap = min(nap * 1.5, 2.0)
