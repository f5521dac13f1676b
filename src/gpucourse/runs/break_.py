"""`break`: run an exercise with a fault injected into it."""

from __future__ import annotations

import secrets
from dataclasses import replace

from gpucourse.context import Context
from gpucourse.errors import ExerciseFailed
from gpucourse.launch import drill as launch_drill
from gpucourse.model.drill import BY_RANK, How, InjectedFault
from gpucourse.model.manifest import Module
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.runs.prepare import RunRequest, resolve
from gpucourse.runs.run import RunResult, run
from gpucourse.workspace import deployments
from gpucourse.workspace.files import write_record


def break_exercise(context: Context, run_request: RunRequest, how: How | None) -> RunResult:
    """Run the exercise with a fault in it; with None, one at random. No log and no file of the run shows which fault it is.

    Raises UsageError if there is nothing to break, ExerciseFailed if the fault came too late; and what `run` raises.
    """
    module, exercise = context.catalog.exercise(run_request.exercise)
    drills = exercise.launch.traits.drills
    if not drills:
        raise launch_drill.no_ranks(exercise.id, exercise.launch.kind, in_code=bool(exercise.faults))
    run_request = _at_home(context, module, run_request)
    chosen: How = secrets.choice(list(drills)) if how is None else how
    faults: list[InjectedFault] = []

    def inject_faults(plan: LaunchPlan) -> tuple[LaunchPlan, dict[str, dict[str, object]]]:
        rank = secrets.randbelow(plan.world_size) if chosen in BY_RANK else None
        faults.append(InjectedFault(run=plan.run_id, exercise=plan.exercise, how=chosen, rank=rank))
        write_record(context.paths.drill(plan.run_id), faults[0])
        after_s = 0.1 + secrets.randbelow(400) / 1000
        return launch_drill.prepare_drill(plan, faults[0]), launch_drill.plan_faults(plan, faults[0], after_s=after_s)

    resolved = resolve(context, run_request)
    ran = run(context, resolved, inject_faults=inject_faults, object_to=launch_drill.object_to_plan)
    record = ran.record
    if not _took_effect(record, faults[0]):
        context.paths.drill(record.id).unlink(missing_ok=True)
        raise ExerciseFailed(
            f"the fault had no effect on run {record.id}: the run was over before it, or ended for another reason",
            hint=f"gpucourse logs {record.id}; then again, with more work for the ranks: gpucourse break {record.exercise}",
        )
    return ran


def _at_home(context: Context, module: Module, run_request: RunRequest) -> RunRequest:
    """Return the request for the simulated lab, if there is one; else unchanged, and the plan is refused with a reason."""
    labs = (lab for lab in deployments.of_module(context.paths, module.id) if lab.is_simulated and lab.up)
    return next((replace(run_request, target=lab.target) for lab in labs), run_request)


def _took_effect(record: RunRecord, fault: InjectedFault) -> bool:
    """Return whether the fault shows in how the run ended."""
    if fault.how == "slow-rank":
        return all(exit_.code == 0 for exit_ in record.node_exits)
    if fault.how == "kill-rank":
        return any(exit_.rank == fault.rank and exit_.code == 137 for exit_ in record.rank_exits)
    return any(exit_.code or exit_.reason != "exited" for exit_ in record.node_exits)
