"""`run`: plan, record, launch, follow, finish. Losing this process at any point loses nothing: the record says where it was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpucourse import __version__
from gpucourse.actions import attend
from gpucourse.actions.context import Context
from gpucourse.actions.prepare import Order, choose, deployed, plan_on, request
from gpucourse.actions.reach import reach
from gpucourse.actions.timing import stage
from gpucourse.errors import GpucourseError, Interrupted
from gpucourse.model.deployment import Deployment
from gpucourse.model.manifest import Module
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record
from gpucourse.workspace.lock import locked

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet

REHEARSAL = "dry-run"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What `run` did. `record` is None for a dry run; `attended` is None where the run goes on without us."""

    plan: LaunchPlan
    record: RunRecord | None = None
    attended: attend.Attended | None = None


def run(context: Context, order: Order, *, detach: bool, dry_run: bool) -> Ran:
    """Run an exercise on the nodes of its lab.

    Raises UsageError, MissingError (no lab, no torch), UnreachableError, ExerciseFailed; Interrupted when the person let
    go: the run then goes on.
    """
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.ssh import SshTransport

    module, exercise = context.catalog.exercise(order.exercise)
    deployment = deployed(context, module)
    inventory = deployment.inventory
    if inventory is None:  # `deployed` promises one
        raise AssertionError(deployment.stack)
    wanted = request(context, module, exercise, order, local=deployment.target == "local")
    nodes = choose(exercise, inventory, order, module)
    phases: dict[str, float] = {}
    skew_s: dict[str, float] = {}
    with Fleet(SshTransport(context.paths.client_key), nodes) as fleet:
        with stage(context.watch, "connect", f"connecting to {len(nodes)} nodes", phases):
            reach(context, fleet)
            plan = plan_on(context, fleet, wanted, REHEARSAL, skew_s)
        if dry_run:
            return Ran(plan=plan)
        run_id = runs.new_run(context.paths, exercise.id)
        # Locked before there is a record: who comes by would take a run that has not started yet for one that never will.
        with locked(attend.lock_of(context, run_id), f"run {exercise.id}"):
            plan = replace(plan, run_id=run_id)
            record = _record(context, module, deployment, plan, order)
            record.phases_s, record.clock_skew_s = phases, skew_s
            _launch(context, fleet, record, plan)
            if detach:
                return Ran(plan=plan, record=record)
            return Ran(plan=plan, record=record, attended=attend.through(context, fleet, record))


def _record(context: Context, module: Module, deployment: Deployment, plan: LaunchPlan, order: Order) -> RunRecord:
    record = RunRecord(
        id=plan.run_id,
        exercise=plan.exercise,
        module=module.id,
        stack=deployment.stack,
        mode=plan.mode,
        launcher=plan.launcher,
        own_script=str(order.script) if order.script else None,
        state="planned",
        created=now_utc("milliseconds"),
        parameters=plan.parameters,
        nodes=[node.name for node in plan.nodes],
        world_size=plan.world_size,
        silence_s=order.silence_s or plan.collective_timeout_s,
        gpucourse=__version__,
    )
    write_record(runs.files_of(context.paths, record).plan, plan)
    runs.save(context.paths, record)
    return record


def _launch(context: Context, fleet: Fleet, record: RunRecord, plan: LaunchPlan) -> None:
    from gpucourse.remote.execute import launch

    record.state = "starting"
    runs.save(context.paths, record)
    try:
        with stage(context.watch, "launch", f"starting {plan.world_size} ranks", record.phases_s):
            launch(fleet, plan, context.watch)
    except (GpucourseError, KeyboardInterrupt) as error:
        interrupted = isinstance(error, KeyboardInterrupt | Interrupted)
        attend.give_up(context, fleet, record, "cancelled" if interrupted else "failed", str(error) or "interrupted")
        if interrupted:
            raise Interrupted("interrupted while starting; nothing of the run is left on the nodes") from error
        raise
    record.state, record.started = "running", now_utc()
    runs.save(context.paths, record)
