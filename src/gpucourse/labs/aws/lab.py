"""A lab on AWS: the resources that Terraform has recorded, and those that exist in the account."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpucourse.aws import resource_scan
from gpucourse.aws.offerings import instance_type
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.limits import MAX_LAB_HOURS, MIN_LAB_HOURS
from gpucourse.model.cloud import CloudInstance, CloudResource
from gpucourse.model.deployment import AwsDeployment, Cloud
from gpucourse.model.event import Watcher
from gpucourse.model.node import Inventory
from gpucourse.provision.stack import TerraformStack
from gpucourse.workspace import regions
from gpucourse.workspace.locate import Workspace
from gpucourse.workspace.paths import StackPaths, WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.workspace.settings import Settings


@dataclass(frozen=True)
class CloudLab:
    """One stack in an AWS account.

    `terraform` has Terraform's record of the stack; `find_resources` queries the account.
    """

    context: Context
    deployment: AwsDeployment
    terraform: TerraformStack
    account: Account

    @property
    def paths(self) -> StackPaths:
        """Return the paths of the stack's files."""
        return self.context.paths.stack(self.deployment.stack)

    @property
    def cloud(self) -> Cloud:
        """Return the placement of the lab. Every deployment on AWS has one."""
        return self.deployment.cloud

    def up(self, watcher: Watcher) -> Inventory:
        """Build the planned lab; return its nodes. They have no host keys until the readiness checks pin them."""
        return reachable(self.context.settings, self.terraform.up(watcher))

    def find_resources(self) -> list[CloudResource]:
        """Return the resources in the account that have this stack's tags, in every region that this workspace ever used."""
        used_regions = list_regions(self.context.paths, self.deployment)
        return resource_scan.find(self.account, stack=self.deployment.uid, regions=used_regions)


def list_regions(paths: WorkspacePaths, deployment: AwsDeployment) -> list[str]:
    """Return every region to search: the deployment's own, and all that this workspace ever used."""
    return list(dict.fromkeys([deployment.cloud.region, *regions.read_used_regions(paths)]))


def open_cloud(context: Context, deployment: AwsDeployment) -> CloudLab:
    """Return the lab of a deployment on AWS. Raises MissingError without Terraform."""
    from gpucourse.provision.binary import find_terraform

    terraform = TerraformStack(
        paths=context.paths.stack(deployment.stack),
        template=context.folders.stack(deployment.template),
        variables=variables(context, deployment),
        binary=find_terraform(context.environ),
        environ=context.environ,
        stop=context.stop,
    )
    return CloudLab(context, deployment, terraform, Account(deployment.cloud.region, context.environ))


def variables(context: Context, deployment: AwsDeployment) -> dict[str, object]:
    """Return the values for the variables of the stack's Terraform files."""
    from gpucourse.remote.keys import ensure_client_key

    cloud = deployment.cloud
    values: dict[str, object] = {
        "region": cloud.region,
        "zone": cloud.zone,
        "instance_type": cloud.instance_type,
        "node_count": deployment.nodes_wanted,
        "spot": cloud.market == "spot",
        "placement_group": cloud.placement_group,
        "ssh_cidr": cloud.ssh_cidr,
        "public_key": ensure_client_key(context.paths.client_key),
        "ttl_hours": cloud.ttl_hours,
        "tags": tags(context.workspace, deployment),
    }
    # A lab keeps the Terraform files that it was built with; the files of version 0.1 have a variable for each value.
    if context.paths.stack(deployment.stack).declarations.is_file():
        return values
    limits = {"min_ttl_hours": MIN_LAB_HOURS, "max_ttl_hours": MAX_LAB_HOURS}
    return {"lab": values | limits | {"gpus": instance_type(cloud.instance_type).gpus}}


def tags(workspace: Workspace, deployment: AwsDeployment) -> dict[str, str]:
    """Return the tags that mark every resource of a deployment as belonging to the course."""
    cloud = deployment.cloud
    return {
        "Project": "gpucourse",
        "Course": workspace.id,
        "Module": deployment.module,
        "Owner": cloud.owner,
        "Stack": deployment.uid,
        "Expires": cloud.expires,
    }


def reachable(settings: Settings, inventory: Inventory) -> Inventory:
    """Return the nodes with the proxy command and the Python of the learner's settings."""
    nodes = (
        replace(node, proxy=settings.ssh_proxy_command, python=settings.node_python or node.python) for node in inventory.nodes
    )
    return replace(inventory, nodes=tuple(nodes))


def update_addresses(inventory: Inventory, running: Iterable[CloudInstance]) -> Inventory:
    """Return the nodes with the current addresses of their running instances. Other nodes keep their addresses."""
    instances_by_node = {instance.node: instance for instance in running}
    nodes = [
        replace(node, address=instance.address, private_address=instance.private_address)
        if (instance := instances_by_node.get(node.name))
        else node
        for node in inventory.nodes
    ]
    return replace(inventory, nodes=tuple(nodes))
