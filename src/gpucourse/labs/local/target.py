"""The target `local`: simulated nodes on this computer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from gpucourse.errors import UsageError
from gpucourse.labs.health import Health, LabHealth
from gpucourse.labs.target import Target
from gpucourse.model.deployment import LocalDeployment, Receipt

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.local.deploy import LocalProposal
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import BuildResult
    from gpucourse.model.cloud import Finding


class LocalTarget(Target["LocalProposal", LocalDeployment]):
    """Labs of simulated nodes. They cost nothing, so nothing is asked; a look at them takes neither Terraform nor SSH."""

    name = "local"
    no_clock = "simulated nodes cost nothing and have no deadline: they stay until you destroy them"

    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[LocalProposal]:
        """See labs.local.deploy."""
        from gpucourse.labs.local.deploy import propose

        return propose(context, request)

    def build(self, context: Context, proposal: LocalProposal) -> BuildResult:
        """See labs.local.deploy."""
        from gpucourse.labs.local.deploy import build

        return build(context, proposal)

    def health(self, context: Context, labs: Sequence[LocalDeployment], *, ask_nodes: bool) -> Health:
        """What the processes, ports and folders of the nodes say."""
        if not labs:
            return Health()
        from gpucourse.labs.local.lab import inspect

        return Health(labs={lab.stack: LabHealth(nodes=inspect(context, lab)) for lab in labs})

    def take_down(self, context: Context, deployment: LocalDeployment, receipt: Receipt) -> None:
        """With Terraform; what it misses is found by process, port and folder."""
        from gpucourse.labs.local.lab import open_simulated
        from gpucourse.labs.take_down import take_down

        take_down(context, deployment, receipt, open_simulated(context, deployment))

    def find_requirements(self, context: Context, *, meant: bool) -> list[Finding]:
        """See labs.local.requirements."""
        from gpucourse.labs.local.requirements import find_requirements

        return find_requirements(context)

    def own_flags(self, request: DeployRequest) -> list[str]:
        """The network between the nodes, and where their Slurm comes from."""
        typed = {"--link": request.link, "--unpack-slurm": request.unpack_slurm}
        return [flag for flag, given in typed.items() if given]

    def refuse_elsewhere(self, request: DeployRequest, flags: Sequence[str]) -> UsageError:
        """Both are only for simulated nodes."""
        value = f" {request.link}" if flags[0] == "--link" else ""
        return UsageError(
            f"{flags[0]}: only for simulated nodes", hint=f"gpucourse deploy {request.module} --target local {flags[0]}{value}"
        )
