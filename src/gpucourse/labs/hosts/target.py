"""The target `hosts`: machines that exist already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from gpucourse.errors import GpucourseError, UsageError
from gpucourse.labs.results import Health, LabHealth
from gpucourse.labs.target import Target
from gpucourse.model.deployment import HostsDeployment, NodeHealth, Receipt

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.hosts.deploy import HostsProposal
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import BuildResult


class HostsTarget(Target["HostsProposal", HostsDeployment]):
    """Labs on machines of the learner. Nothing is installed on them, and only a lab's own files are removed."""

    name = "hosts"
    no_clock = "the course neither starts nor ends these machines"
    forgettable = True

    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[HostsProposal]:
        """Examine the machines and propose them as a lab: see labs.hosts.deploy."""
        from gpucourse.labs.hosts.deploy import propose

        return propose(context, request)

    def build(self, context: Context, proposal: HostsProposal) -> BuildResult:
        """Build the proposed lab: see labs.hosts.deploy."""
        from gpucourse.labs.hosts.deploy import build

        return build(context, proposal)

    def health(self, context: Context, labs: Sequence[HostsDeployment], *, ask_nodes: bool) -> Health:
        """Return whether each machine accepts the login right now."""
        return Health(labs={lab.stack: LabHealth(nodes=_inspect_lab(context, lab)) for lab in labs})

    def take_down(self, context: Context, deployment: HostsDeployment, receipt: Receipt) -> None:
        """End this program's runs and remove its folders; change nothing else."""
        self.take_down_reachable(context, deployment, receipt, {})

    def find_unreachable_nodes(self, context: Context, deployment: HostsDeployment) -> dict[str, str]:
        """Return the machines that do not report this program's leftovers, for any reason."""
        from gpucourse.labs.hosts.lab import open_hosts

        with open_hosts(context, deployment) as lab:
            return lab.find_unreachable_nodes()

    def take_down_reachable(
        self, context: Context, deployment: HostsDeployment, receipt: Receipt, unreachable: Mapping[str, str]
    ) -> None:
        """Take the lab down on the machines that can be reached. The receipt lists what may be left on the others."""
        from gpucourse.labs.hosts.lab import open_hosts, take_down_reachable

        take_down_reachable(
            context, deployment, receipt, unreachable, open_lab=open_hosts, is_gone="if a machine is gone for good"
        )

    def reach_again(self, context: Context, deployment: HostsDeployment) -> tuple[str, str]:
        """Return advice: try the machines again, or forget a machine that is gone for good."""
        retry = f"gpucourse deploy {deployment.module}{deployment.flag} looks at the machines again"
        return "", f"{retry}; if one is gone for good: gpucourse destroy {deployment.module} --forget-unreachable"

    def is_meant_by(self, request: DeployRequest) -> bool:
        """Return whether the request names machines."""
        return bool(request.hosts)

    def own_flags(self, request: DeployRequest) -> list[str]:
        """Return the flags about machines, their keys and fingerprints, and permission to compute on a login node."""
        flags = {
            "--hosts": request.hosts,
            "--key": request.key,
            "--trust": request.trust,
            "--on-login-node": request.on_login_node,
        }
        return [flag for flag, value in flags.items() if value]

    def refuse_elsewhere(self, request: DeployRequest, flags: Sequence[str]) -> UsageError:
        """Return the error for flags that make no sense on nodes that this program creates."""
        hint = f"gpucourse deploy {request.module} --target hosts"
        return UsageError(f"{', '.join(flags)}: only for machines that exist already", hint=hint)


def _inspect_lab(context: Context, lab: HostsDeployment) -> list[NodeHealth]:
    """Return the health of a lab's nodes. If the lab cannot be inspected, return the reason, so that other labs are still
    shown."""
    from gpucourse.labs.hosts.lab import open_hosts

    try:
        return open_hosts(context, lab).inspect()
    except GpucourseError as error:
        return [NodeHealth(node=lab.stack, healthy=False, known=False, detail=error.what)]
