"""Finding the nodes of a lab on AWS that no longer exist, according to the account."""

from __future__ import annotations

from gpucourse.aws import instances
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws import termination_reason
from gpucourse.labs.aws.account import account_of
from gpucourse.model.deployment import AwsDeployment


def find_lost_nodes(context: Context, deployment: AwsDeployment) -> dict[str, str]:
    """Return the nodes on record that the account no longer has, by name, with why they ended. A stopped node is not lost.

    Empty if the account does not answer, or the credentials are for another one: then this cannot be known.
    """
    cloud = deployment.cloud
    try:
        cloud_instances = instances.find(account_of(context, deployment), stack=deployment.uid)
    except GpucourseError:
        return {}
    alive = {instance.node for instance in cloud_instances if instance.alive}
    newest = {
        instance.node: instance for instance in cloud_instances if not instance.alive
    }  # by launch: the newest one of a name wins
    names = [node.name for node in deployment.inventory.nodes] if deployment.inventory else []
    return {
        name: termination_reason.describe_termination(newest[name], cloud.expires)
        if name in newest
        else f"{name}: AWS no longer lists it"
        for name in names
        if name not in alive
    }
