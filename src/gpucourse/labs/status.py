"""`status`: every stack, each node as it is right now. Loads no Terraform; SSH and AWS only where a lab stands there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs import lab
from gpucourse.model.deployment import AwsDeployment, Deployment, NodeHealth
from gpucourse.model.record import RunRecord
from gpucourse.workspace import deployments, runs

if TYPE_CHECKING:
    from gpucourse.labs.aws.status import Outlook


@dataclass(frozen=True, kw_only=True)
class StackStatus:
    """One stack: its record, the health of its nodes, the runs that have not ended; in the cloud also what will end it."""

    deployment: Deployment
    nodes: list[NodeHealth]
    active_runs: list[RunRecord]
    cloud: Outlook | None = None

    @property
    def healthy(self) -> bool:
        """Whether the stack is ready and every node of it answers."""
        return self.deployment.phase == "ready" and bool(self.nodes) and all(node.healthy for node in self.nodes)


@dataclass(frozen=True, kw_only=True)
class Status:
    """Every stack of the workspace, sentences about what no record explains and may cost, and how many records of stacks are
    damaged."""

    stacks: list[StackStatus]
    warnings: list[str] = field(default_factory=list)
    unreadable: int = 0


def status(context: Context, *, ask_nodes: bool = True) -> Status:
    """Every stack of the workspace. `ask_nodes`: also what the idle agents on cloud nodes saw last."""
    known, unreadable = deployments.readable(context.paths)
    active = runs.under_way(context.paths)
    paid = [deployment for deployment in known if isinstance(deployment, AwsDeployment)]
    outlooks: dict[str, Outlook] = {}
    warnings = [f"{error.what}; {error.hint}" for error in unreadable.values()]
    if paid:
        from gpucourse.labs.aws.status import look

        seen = look(context, paid, ask_nodes=ask_nodes)
        outlooks = seen.labs
        warnings += [
            f"no record knows {one.id} ({one.instance_type}, {one.state}, {one.region}) of this workspace: gpucourse leaks"
            for one in seen.unrecorded
        ]
    elif context.paths.ledger.exists():
        warnings += _still_billed(context)
    stacks = [_stack(context, one, active, outlooks.get(one.stack)) for one in known]
    return Status(stacks=stacks, warnings=warnings, unreadable=len(unreadable))


def _stack(context: Context, deployment: Deployment, active: list[RunRecord], outlook: Outlook | None) -> StackStatus:
    return StackStatus(
        deployment=deployment,
        nodes=outlook.nodes if outlook else _inspected(context, deployment),
        active_runs=[record for record in active if record.stack == deployment.stack],
        cloud=outlook,
    )


def _inspected(context: Context, deployment: Deployment) -> list[NodeHealth]:
    """The health of a lab's nodes. Why one cannot be looked at is said in its place, and the others are shown."""
    try:
        return lab.inspect(context, deployment)
    except GpucourseError as error:
        return [NodeHealth(node=deployment.stack, healthy=False, known=False, detail=error.what)]


def _still_billed(context: Context) -> list[str]:
    """What the ledger says still costs, where no record of a lab is left that would explain it."""
    from gpucourse.workspace import ledger

    open_ = [span.charge.item for span in ledger.read(context.paths.ledger).open() if span.charge.kind == "instance"]
    return (
        [f"no lab is on record, and the ledger says that these still cost: {', '.join(open_)}. Look: gpucourse leaks"]
        if open_
        else []
    )
