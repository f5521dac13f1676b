"""The target `hosts`: machines that exist already."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from gpucourse.errors import GpucourseError, MissingError, UnreachableError
from gpucourse.labs.results import Health, LabHealth
from gpucourse.labs.target import D_contra, P, Target
from gpucourse.model.deployment import HostsDeployment, NodeHealth, Receipt

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.hosts.deploy import HostsProposal
    from gpucourse.labs.hosts.lab import HostsLab
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import BuildResult


class ForgettableTarget(Target[P, D_contra]):
    """A target whose machines the course did not create. If they are gone for good, the lab can be forgotten.

    `is_gone`: the condition under which the learner may forget a node.
    """

    forgettable = True
    is_gone: str

    @abstractmethod
    def open_lab(self, context: Context, deployment: D_contra, *, without: Collection[str] = ()) -> HostsLab:
        """Return the lab of a deployment. `without`: the names of nodes to leave alone."""

    def take_down(self, context: Context, deployment: D_contra, receipt: Receipt) -> None:
        """End this program's runs and remove its folders; change nothing else."""
        self.take_down_reachable(context, deployment, receipt, {})

    def find_unreachable_nodes(self, context: Context, deployment: D_contra) -> dict[str, str]:
        """Return the machines that do not report this program's leftovers, by name, with the reason."""
        with self.open_lab(context, deployment) as lab:
            return lab.find_unreachable_nodes()

    def take_down_reachable(
        self, context: Context, deployment: D_contra, receipt: Receipt, unreachable: Mapping[str, str]
    ) -> None:
        """Take the lab down on the machines that can be reached. The receipt lists what may be left on the others."""
        from gpucourse.labs.destroy import take_down

        with self.open_lab(context, deployment, without=unreachable) as lab:
            try:
                take_down(context, deployment, receipt, lab)
            except (UnreachableError, MissingError) as error:
                error.hint = f"{error.hint}; {self.is_gone}: gpucourse destroy {deployment.module} --forget-unreachable"
                raise
        with self.open_lab(context, deployment) as lab:
            receipt.forgotten = lab.list_forgotten(unreachable)


class HostsTarget(ForgettableTarget["HostsProposal", HostsDeployment]):
    """Labs on the learner's machines. Nothing is installed on them, and only a lab's own files are removed."""

    name = "hosts"
    no_clock = "the course neither starts nor ends these machines"
    is_gone = "if a machine is gone for good"
    flags = frozenset({"--hosts", "--key", "--trust", "--on-login-node"})
    serves = "machines that exist already"
    implied_by = frozenset({"--hosts"})

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

    def open_lab(self, context: Context, deployment: HostsDeployment, *, without: Collection[str] = ()) -> HostsLab:
        """Return the lab on the learner's machines."""
        from gpucourse.labs.hosts.lab import open_hosts

        return open_hosts(context, deployment, without=without)

    def advise_on_unreachable(self, context: Context, deployment: HostsDeployment) -> tuple[str, str]:
        """Return advice: try the machines again, or forget a machine that is gone for good."""
        retry = f"gpucourse deploy {deployment.module}{deployment.flag} examines the machines again"
        return "", f"{retry}; if one is gone for good: gpucourse destroy {deployment.module} --forget-unreachable"


def _inspect_lab(context: Context, lab: HostsDeployment) -> list[NodeHealth]:
    """Return the health of a lab's nodes. If the lab cannot be inspected, return the reason, so that other labs are still
    shown."""
    from gpucourse.labs.hosts.lab import open_hosts

    try:
        return open_hosts(context, lab).inspect()
    except GpucourseError as error:
        return [NodeHealth(node=lab.stack, healthy=False, known=False, detail=error.what)]
