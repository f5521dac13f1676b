"""`run`: plan, record, launch, follow, finish. If this process dies, nothing is lost: the record shows how far the run got."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpucourse import __version__
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import Note, stage
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.runs import parts, slurm
from gpucourse.runs.mutations import keep_edited_files
from gpucourse.runs.prepare import plan_run
from gpucourse.runs.resolve import ResolvedRun
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record
from gpucourse.workspace.lock import hold_lock

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet
    from gpucourse.runs import follow

Faults = dict[str, dict[str, object]]
"""The faults that the agent of each node injects, by node name."""
InjectFaults = Callable[[LaunchPlan], tuple[LaunchPlan, Faults]]


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of `run`. `followed_run`: None if the run continues without a follower."""

    record: RunRecord
    followed_run: follow.FollowedRun | None = None


def run(
    context: Context,
    resolved: ResolvedRun,
    *,
    detach: bool = False,
    inject_faults: InjectFaults | None = None,
    is_repair: bool = False,
    object_to: Callable[[LaunchPlan], GpucourseError | None] = lambda _plan: None,
) -> RunResult:
    """Run an exercise on the nodes of its lab.

    For drills, `object_to` may refuse a plan before anything is recorded, and `inject_faults` returns the plan to launch
    instead, with the faults. `is_repair`: whether it runs a copy that the learner repaired. Raises the errors of `plan_run`,
    ExerciseFailed, and Interrupted when the user presses Ctrl-C: the run then continues.
    """
    with plan_run(context, resolved, is_drill=inject_faults is not None or is_repair) as planned_run:
        if (objection := object_to(planned_run.plan)) is not None:
            raise objection
        if not resolved.is_scheduled:
            _warn_of_others(context, planned_run.deployment, {node.name for node in planned_run.fleet.nodes})
        run_id = runs.new_run(context.paths, resolved.request.place)
        # The lock comes before the record: otherwise, another command would assume that the run will never start.
        with hold_lock(runs.lock_of(context.paths, run_id), f"run {resolved.exercise.id}"):
            plan = replace(planned_run.plan, run_id=run_id)
            record = new_record(context, resolved, planned_run.deployment, plan)
            record.phases_s, record.clock_skew_s = planned_run.phases_s, planned_run.skew_s
            record.drill, record.repair = inject_faults is not None or is_repair, is_repair
            launched, faults = inject_faults(plan) if inject_faults else (plan, {})
            record.max_restarts = launched.max_restarts
            submit(context, planned_run.fleet, record, launched, faults=faults)
            if detach:
                return RunResult(record=record)
            from gpucourse.runs import follow

            return RunResult(record=record, followed_run=follow.follow_to_end(context, planned_run.fleet, record))


def _warn_of_others(context: Context, deployment: Deployment, nodes: set[str]) -> None:
    """Warn about other runs that are under way on these nodes: they share the processors, which distorts all timings. A run
    that ended unattended is collected first."""
    records = [record for record in runs.list_unfinished(context.paths, deployment.stack) if nodes & set(record.nodes)]
    if not records:
        return
    from gpucourse.runs.connect import Connections
    from gpucourse.runs.settle import settle

    running_ids = []
    with Connections(context) as connections:
        for record in records:
            try:
                if not settle(context, record, connections).has_ended:
                    running_ids.append(record.id)
            except GpucourseError as error:
                text = f"{record.id} may still be running here ({error.what}), so timings may be unreliable"
                context.watch(Note(text=f"{text}. Its state: gpucourse runs", level="warning"))
    if running_ids:
        verb, runs_text = ("is", "both runs") if len(running_ids) == 1 else ("are", "all runs")
        text = f"{', '.join(running_ids[-3:])} {verb} still running here; timings of {runs_text} will be unreliable"
        context.watch(Note(text=f"{text}. To end it: gpucourse cancel {running_ids[-1]}", level="warning"))


def new_record(context: Context, run: ResolvedRun, deployment: Deployment, plan: LaunchPlan) -> RunRecord:
    """Return the record of a run that is about to start, after storing the record and the run's plan."""
    request = run.request
    record = RunRecord(
        id=plan.run_id,
        exercise=plan.exercise,
        module=run.lab.id,
        stack=deployment.stack,
        mode=plan.mode,
        launcher=plan.launcher,
        # The whole path, because scripts in two folders may have the same name.
        own_script=os.path.normpath(request.script.absolute()) if request.script else None,
        own_module=request.python_module or None,
        place=request.place if request.script else None,
        profiled=request.profile,
        state="planned",
        created=now_utc("milliseconds"),
        prediction=request.prediction,
        expected_red=request.expected_red,
        parameters=plan.parameters,
        environment=dict(request.environment),
        handed_on=list(plan.handed_on),
        torchrun=request.torchrun,
        checks=[dict(check) for check in request.checks],
        nodes=[node.name for node in plan.nodes],
        spread=plan.spread,
        world_size=plan.world_size,
        silence_s=request.silence_s or plan.collective_timeout_s,
        gpucourse=__version__,
        slurm=slurm.make_slurm_record(plan),
    )
    write_record(runs.files_of(context.paths, record).plan, plan)
    slurm.keep_files(plan, runs.files_of(context.paths, record))
    parts.keep_started_files(context, run.exercise, record, request.copies)
    if request.copies is None:
        keep_edited_files(context, record)
    runs.save(context.paths, record)
    return record


def submit(
    context: Context,
    fleet: Fleet,
    record: RunRecord,
    plan: LaunchPlan,
    *,
    faults: Mapping[str, Mapping[str, object]] | None = None,
    array: Mapping[str, object] | None = None,
) -> None:
    """Start a recorded run on its nodes, or submit it to Slurm. If that fails, the run is recorded as ended, and nothing of it
    is left on the nodes.

    `array`: see `remote.execute.launch`.

    Raises the errors of `remote.execute.launch`, and Interrupted when the user presses Ctrl-C.
    """
    from gpucourse.remote.execute import launch

    record.state = "starting"
    runs.save(context.paths, record)
    try:
        ranks = "1 rank" if plan.rank_count == 1 else f"{plan.rank_count} ranks"
        activity = f"starting {ranks}" if plan.batch is None else "submitting to Slurm"
        with stage(context.watch, "launch", activity, record.phases_s):
            secrets = {name: context.environ[name] for name in plan.handed_on}
            collected = runs.list_collected(context.paths, record.stack)
            launch(fleet, plan, context.watch, faults=faults, secrets=secrets, collected=collected, array=array)
    except (GpucourseError, KeyboardInterrupt) as error:
        from gpucourse.runs import follow

        interrupted = isinstance(error, KeyboardInterrupt | Interrupted)
        follow.give_up(context.paths, fleet, record, "cancelled" if interrupted else "failed", str(error) or "interrupted")
        if interrupted:
            raise Interrupted("interrupted while starting; nothing of the run is left on the nodes") from error
        raise
    record.state, record.started = "running", now_utc()
    runs.save(context.paths, record)
