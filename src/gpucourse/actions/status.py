"""`status`: every stack, each node as it is right now. Reads records and looks at processes; loads no SSH, no Terraform."""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.actions import lab
from gpucourse.actions.context import Context
from gpucourse.model.deployment import Deployment, NodeHealth
from gpucourse.model.record import RunRecord
from gpucourse.workspace import deployments, runs


@dataclass(frozen=True, kw_only=True)
class StackStatus:
    """One stack: its record, the health of its nodes, the runs that have not ended."""

    deployment: Deployment
    nodes: list[NodeHealth]
    active_runs: list[RunRecord]

    @property
    def healthy(self) -> bool:
        """Whether the stack is ready and every node of it answers."""
        return self.deployment.phase == "ready" and all(node.healthy for node in self.nodes)


def status(context: Context) -> list[StackStatus]:
    """Every stack of the workspace."""
    active = [record for record in runs.every(context.paths) if not record.ended_state]
    return [
        StackStatus(
            deployment=deployment,
            nodes=lab.inspect(context, deployment),
            active_runs=[record for record in active if record.stack == deployment.stack],
        )
        for deployment in deployments.every(context.paths)
    ]
