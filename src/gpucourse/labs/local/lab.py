"""A lab of simulated nodes on this computer: Terraform's record of it, combined with the reports of the nodes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.local import health
from gpucourse.model.deployment import Leftover, LocalDeployment, NodeHealth
from gpucourse.storage import find_login
from gpucourse.workspace.paths import StackPaths, WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.labs.local.requirements import Computer
    from gpucourse.model.event import Watcher
    from gpucourse.provision.stack import TerraformStack


def machine_names(deployment: LocalDeployment) -> list[str]:
    """Return the names of all machines: node0, node1 and so on. Under Slurm, there is a head in addition to the counted
    nodes."""
    return [f"node{index}" for index in range(deployment.nodes_wanted + deployment.has_slurm)]


def inspect(paths: WorkspacePaths, deployment: LocalDeployment) -> list[NodeHealth]:
    """Return the current health of each node of a deployment. Changes nothing, and needs neither Terraform nor SSH."""
    return health.inspect(paths.stack(deployment.stack).nodes, machine_names(deployment))


def choose(
    context: Context,
    deployment: LocalDeployment,
    scheduler: str | None,
    link: str | None,
    *,
    unpack: bool = False,
    computer: Computer | None = None,
) -> None:
    """Choose how the simulated nodes become separate machines, and record the choice. With `unpack`, fetch Slurm's packages if
    Slurm is not installed.

    `computer` is this computer, except in tests. Raises UsageError for a link or scheduler that the lab cannot have. Raises
    MissingError, which says what to install.
    """
    from gpucourse.labs.local import requirements
    from gpucourse.local.machines import link as cable
    from gpucourse.local.machines.requirements import Lacking, NoNamespaces

    computer = computer or requirements.Computer()
    command = f"gpucourse deploy {deployment.module}"
    if link is not None:
        try:
            link_text = "" if link == "none" else str(cable.parse(link))
        except ValueError as error:
            raise UsageError(f"--link: {error}", hint=f"{command} --link 1gbit") from error
        deployment.variables.link = link_text
    if scheduler:
        deployment.variables.scheduler = scheduler
    slurm = deployment.has_slurm
    if unpack and not slurm:
        raise UsageError(f"{requirements.FLAG}: module {deployment.module} has no Slurm", hint=command)
    deployment.variables.one_host, deployment.lacks = False, ""
    if slurm or deployment.link:
        deployment.shared = "/shared"
        layer = requirements.choose_programs(context, computer, unpack=unpack) if slurm else None
        deployment.variables.layer = str(layer or "")
        try:
            computer.require(slurm=slurm, cable=deployment.link, layer=layer)
        except NoNamespaces as error:
            requirements.fall_back(context.paths, computer, deployment, error)
        except Lacking as error:
            subject = "a Slurm cluster" if slurm else "a limited network (--link)"
            way = requirements.way_without_root(context.environ, computer, command) if slurm else ""
            raise MissingError(f"{subject} on simulated nodes: {error}", hint=f"{error.remedy}{way}") from error
    else:
        deployment.shared = ""


@dataclass(frozen=True)
class SimulatedLab:
    """Simulated nodes on this computer, built by `terraform`. Implements labs.destroy.Removable."""

    paths: StackPaths
    deployment: LocalDeployment
    terraform: TerraformStack

    def sick(self) -> list[str]:
        """Return the Terraform addresses of nodes that are in the state but do not answer: `up` has to replace them."""
        state_addresses = set(self.terraform.addresses())
        names = [report.node for report in self.inspect() if not report.healthy]
        addresses = [f"terraform_data.node[{name.removeprefix('node')}]" for name in names]
        return [address for address in addresses if address in state_addresses]

    def list_existing(self) -> list[str]:
        """Return the existing parts of the lab, as Terraform addresses."""
        return self.terraform.addresses()

    def inspect(self) -> list[NodeHealth]:
        """Return the current health of each node."""
        return health.inspect(self.paths.nodes, machine_names(self.deployment))

    def down(self, watcher: Watcher) -> list[str]:
        """Remove every node; return the removed addresses."""
        return self.terraform.down(watcher)

    def scan_leftovers(self) -> list[Leftover]:
        """Search the processes, ports and folders; return the leftovers of the lab."""
        return health.find_leftovers(self.paths.nodes, self.deployment.uid, self.deployment.ports)

    def end_everything(self) -> None:
        """End and remove everything that Terraform missed."""
        health.end_everything(self.paths.nodes, self.deployment.uid)


def open_simulated(context: Context, deployment: LocalDeployment) -> SimulatedLab:
    """Return the lab of a deployment, ready to plan, build, inspect and remove. Raises MissingError without Terraform."""
    from gpucourse.local import driver
    from gpucourse.provision.binary import find_terraform
    from gpucourse.provision.stack import TerraformStack
    from gpucourse.remote.keys import ensure_client_key

    paths = context.paths.stack(deployment.stack)
    variables: dict[str, object] = {
        **{name: value for name, value in vars(deployment.variables).items() if value},
        "node_count": deployment.nodes_wanted,
        "nodes_folder": str(paths.nodes),
        "python": sys.executable,
        "driver": str(Path(driver.__file__)),
        "stack": deployment.stack,
        "uid": deployment.uid,
        "user": find_login(),
        "public_key": ensure_client_key(context.paths.client_key),
    }
    terraform = TerraformStack(
        paths=paths,
        template=context.folders.stack(deployment.template),
        variables=variables,
        binary=find_terraform(context.environ),
        environ=context.environ,
        stop=context.stop,
    )
    return SimulatedLab(paths, deployment, terraform)
