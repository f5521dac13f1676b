"""The target `here`: this computer with its GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from gpucourse.labs.results import Health, LabHealth
from gpucourse.labs.target import Target
from gpucourse.model.deployment import HereDeployment, Receipt

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.here.deploy import HereProposal
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import BuildResult
    from gpucourse.model.cloud import Finding


class HereTarget(Target["HereProposal", HereDeployment]):
    """Labs of one node: this computer. Their runs use its GPU; they need no account, no sshd and no Terraform."""

    name = "here"
    no_clock = "the course neither starts nor stops this computer"

    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[HereProposal]:
        """Propose this computer as a lab: see labs.here.deploy."""
        from gpucourse.labs.here.deploy import propose

        return propose(context, request)

    def build(self, context: Context, proposal: HereProposal) -> BuildResult:
        """Build the proposed lab: see labs.here.deploy."""
        from gpucourse.labs.here.deploy import build

        return build(context, proposal)

    def health(self, context: Context, labs: Sequence[HereDeployment], *, ask_nodes: bool) -> Health:
        """Return each node's health, according to its process, port and folder."""
        if not labs:
            return Health()
        from gpucourse.local import health

        nodes = {lab.stack: health.inspect(context.paths.stack(lab.stack).nodes, ["node0"]) for lab in labs}
        return Health(labs={stack: LabHealth(nodes=health_of_nodes) for stack, health_of_nodes in nodes.items()})

    def take_down(self, context: Context, deployment: HereDeployment, receipt: Receipt) -> None:
        """Stop everything that runs on the node and remove its files; then search for leftovers by process, port and folder."""
        from gpucourse.labs.destroy import take_down
        from gpucourse.labs.here.deploy import open_here

        take_down(context, deployment, receipt, open_here(context.paths, deployment))

    def find_requirements(self, context: Context, *, is_selected: bool) -> list[Finding]:
        """Return a finding about this computer's GPU: see labs.here.cards."""
        from gpucourse.labs.here.cards import find_requirements

        return find_requirements(context, is_selected=is_selected)
