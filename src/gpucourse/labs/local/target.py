"""The target `local`: simulated nodes on this computer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from gpucourse.labs.results import Health, LabHealth
from gpucourse.labs.target import Target
from gpucourse.model.deployment import LocalDeployment, Receipt

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.local.deploy import LocalProposal
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import BuildResult
    from gpucourse.model.cloud import Finding


class LocalTarget(Target["LocalProposal", LocalDeployment]):
    """Labs of simulated nodes. They cost nothing, so nothing has to be confirmed.

    Their nodes can be inspected without Terraform or SSH.
    """

    name = "local"
    no_clock = "simulated nodes cost nothing and have no deadline: they stay until you destroy them"
    flags = frozenset({"--link", "--unpack-slurm"})
    serves = "simulated nodes"

    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[LocalProposal]:
        """Propose a lab of simulated nodes: see labs.local.deploy."""
        from gpucourse.labs.local.deploy import propose

        return propose(context, request)

    def build(self, context: Context, proposal: LocalProposal) -> BuildResult:
        """Build the proposed lab: see labs.local.deploy."""
        from gpucourse.labs.local.deploy import build

        return build(context, proposal)

    def health(self, context: Context, labs: Sequence[LocalDeployment], *, ask_nodes: bool) -> Health:
        """Return each node's health, according to its process, port and folder."""
        if not labs:
            return Health()
        from gpucourse.labs.local.lab import inspect

        return Health(labs={lab.stack: LabHealth(nodes=inspect(context.paths, lab)) for lab in labs})

    def take_down(self, context: Context, deployment: LocalDeployment, receipt: Receipt) -> None:
        """Take the lab down with Terraform; then search for leftovers by process, port and folder."""
        from gpucourse.labs.destroy import take_down
        from gpucourse.labs.local.lab import open_simulated

        take_down(context, deployment, receipt, open_simulated(context, deployment))

    def find_requirements(self, context: Context, *, is_selected: bool) -> list[Finding]:
        """Return findings about the requirements of simulated nodes: see labs.local.requirements."""
        from gpucourse.labs.local.requirements import find_requirements

        return find_requirements(context)
