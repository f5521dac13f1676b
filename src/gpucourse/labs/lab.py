"""The lab of one module on one target. Only this file knows which file stands behind which target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.model.deployment import AwsDeployment, Deployment, HostsDeployment, Leftover, LocalDeployment, NodeHealth
from gpucourse.model.event import Watcher
from gpucourse.model.node import Inventory
from gpucourse.workspace.paths import StackPaths


class Lab(Protocol):
    """What a target promises of the lab of one deployment. Errors are those of errors.py."""

    @property
    def paths(self) -> StackPaths:
        """The stack's files in the workspace."""
        ...

    @property
    def deployment(self) -> Deployment:
        """Its record, which the lab may fill in while it works; whoever opened the lab stores it."""
        ...

    @property
    def folder(self) -> Path:
        """The stack's folder."""
        ...

    def prepare(self, watcher: Watcher) -> None:
        """Make ready to plan, after waiting for what a killed command left at work."""
        ...

    def sick(self) -> list[str]:
        """What exists on paper and does not answer, by address: `plan` is told to replace it."""
        ...

    def plan(self, watcher: Watcher, replace: Sequence[str] = ()) -> list[tuple[str, str]]:
        """What `up` would do, as (action, address); `up` does exactly this."""
        ...

    def up(self, watcher: Watcher) -> Inventory:
        """Build what was planned and hand over the nodes."""
        ...

    def describe(self) -> str:
        """What builds it: the name and version of Terraform, or nothing."""
        ...

    def forget_if_empty(self) -> None:
        """Leave nothing of a rehearsal behind, where nothing was built."""
        ...

    def inspect(self) -> list[NodeHealth]:
        """How each node is right now. Changes nothing."""
        ...

    def existed(self) -> list[str]:
        """What stands, for the receipt."""
        ...

    def down(self, watcher: Watcher) -> list[str]:
        """Remove everything that this deployment made; what was removed."""
        ...

    def sweep(self) -> list[Leftover]:
        """Look, by other means than a state file, for anything of this deployment that is still there."""
        ...

    def end_everything(self) -> None:
        """End and remove whatever `down` missed."""
        ...


def inspect(context: Context, deployment: Deployment) -> list[NodeHealth]:
    """How each node of a deployment is right now. Changes nothing, needs no Terraform and no SSH."""
    if isinstance(deployment, LocalDeployment):
        from gpucourse.labs.local import lab

        return lab.inspect(context, deployment)
    return open_lab(context, deployment).inspect()


def open_lab(context: Context, deployment: Deployment) -> Lab:
    """The lab of a deployment, ready to plan, build, look at and remove. Raises MissingError without Terraform."""
    if isinstance(deployment, AwsDeployment):
        from gpucourse.labs.aws.lab import open_cloud

        return open_cloud(context, deployment)
    if isinstance(deployment, HostsDeployment):
        from gpucourse.labs.hosts.lab import open_hosts

        return open_hosts(context, deployment)
    if not isinstance(deployment, LocalDeployment):
        raise MissingError(
            f"{deployment.stack} stands on a target that is not here: {deployment.target}", hint="gpucourse status"
        )
    from gpucourse.labs.local.lab import open_simulated

    return open_simulated(context, deployment)
