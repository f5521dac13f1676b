"""`status`: every stack, and the current health of each node. It loads only the targets of existing labs, and never
Terraform."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.results import Health, LabHealth
from gpucourse.labs.target import find_target, list_targets
from gpucourse.model.deployment import Deployment, NodeHealth
from gpucourse.model.record import RunRecord
from gpucourse.workspace import deployments, runs

if TYPE_CHECKING:
    from gpucourse.labs.aws.status import Outlook


@dataclass(frozen=True, kw_only=True)
class StackStatus:
    """One stack: its record, the health of its nodes, and the runs that have not ended.

    `cloud`: its cost and its end.
    `waits`: why runs wait in the queue of a cluster, by the runs' ids.
    """

    deployment: Deployment
    nodes: list[NodeHealth]
    active_runs: list[RunRecord]
    cloud: Outlook | None = None
    waits: dict[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Return whether the stack is ready and all its nodes answer."""
        return self.deployment.phase == "ready" and bool(self.nodes) and all(node.healthy for node in self.nodes)

    @property
    def active_run_ids(self) -> list[str]:
        """Return the ids of the runs that have not ended."""
        return [record.id for record in self.active_runs]


@dataclass(frozen=True, kw_only=True)
class Status:
    """Every stack of the workspace, and warnings: about damaged settings or records, and about unrecorded
    resources that may cost money.

    `unreadable`: how many stack records are damaged.
    """

    stacks: list[StackStatus]
    warnings: list[str] = field(default_factory=list)
    unreadable: int = 0


def status(context: Context, *, ask_nodes: bool = True) -> Status:
    """Return every stack of the workspace. With `ask_nodes`, also query the nodes themselves, if the target supports it."""
    records, unreadable = deployments.readable(context.paths)
    active = runs.list_unfinished(context.paths)
    warnings = [
        *filter(None, [context.find_settings_error()]),
        *(f"{error.what}; {error.hint}" for error in unreadable.values()),
    ]
    health_by_stack: dict[str, LabHealth] = {}
    for name in dict.fromkeys([*list_targets(), *(lab.target for lab in records)]):
        labs = [lab for lab in records if lab.target == name]
        try:
            health = find_target(name).health(context, labs, ask_nodes=ask_nodes)
        except GpucourseError as error:  # for example if a target is not installed: the other labs are still shown
            health = Health(labs={lab.stack: _unknown(lab, error) for lab in labs})
        health_by_stack |= health.labs
        warnings += health.warnings
    stacks = [_stack(lab, active, health_by_stack[lab.stack]) for lab in records]
    return Status(stacks=stacks, warnings=warnings, unreadable=len(unreadable))


def _stack(deployment: Deployment, active: list[RunRecord], health: LabHealth) -> StackStatus:
    return StackStatus(
        deployment=deployment,
        nodes=health.nodes,
        active_runs=[record for record in active if record.stack == deployment.stack],
        cloud=health.outlook,
        waits=health.waits,
    )


def _unknown(deployment: Deployment, error: GpucourseError) -> LabHealth:
    return LabHealth(nodes=[NodeHealth(node=deployment.stack, healthy=False, known=False, detail=error.what)])
