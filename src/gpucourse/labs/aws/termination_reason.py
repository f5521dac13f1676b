"""Explain why an instance ended, and find the nodes of a lab that are gone.

An instance is ended by its own deadline or idle agent, by the spot market, or by a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from gpucourse.aws import instances, schedule
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws.account import account_of
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.deployment import AwsDeployment

SLACK = timedelta(minutes=2)  # the deadline watch looks once a minute
# The codes of StateReason, as EC2's API reference lists them.
TAKEN_BACK = {"Server.SpotInstanceTermination", "Server.SpotInstanceShutdown"}
FROM_INSIDE = {"Client.InstanceInitiatedShutdown"}
BY_A_CALL = {"Client.UserInitiatedShutdown", "Client.UserInitiatedHibernate"}


def explain_end(instance: CloudInstance, expires: str) -> str:
    """Return why an instance ended or stopped, as far as AWS's code and the time show. `expires`: the lab's deadline."""
    code, end = instance.reason_code, instance.ended
    deadline = datetime.fromisoformat(expires) if expires else None
    is_late = deadline is not None and end is not None and end >= deadline - SLACK
    if code in TAKEN_BACK:
        return "AWS reclaimed the spot instance"
    if code in FROM_INSIDE:
        return "its deadline passed" if is_late else "it powered itself off, because it was idle or because of a command"
    if code in BY_A_CALL:
        if instance.state in {"stopped", "stopping"}:
            return "a person stopped it through the account"
        if deadline is not None and end is not None and end >= deadline + schedule.AFTER - SLACK:
            return "AWS ended it after its deadline (the backstop)"
        return "a person ended it through the account"
    return instance.reason or f"AWS says only that it is {instance.state}"


def select_lab_instances(lab: AwsDeployment, instances: Iterable[CloudInstance]) -> list[CloudInstance]:
    """Return the instances of the lab's current nodes. Instances that were removed to make the lab smaller are left out."""
    names = {node.name for node in lab.inventory.nodes} if lab.inventory else None
    return [instance for instance in instances if names is None or instance.node in names]


def describe_termination(instance: CloudInstance, expires: str) -> str:
    """Return one line with the node, the id of its instance, and why and when the instance ended."""
    moment = f", {instance.ended:%Y-%m-%d %H:%M} UTC" if instance.ended else ""
    return f"{instance.node or 'an instance'} ({instance.id}): {explain_end(instance, expires)}{moment}"


def find_lost_instances(lab: AwsDeployment, instances: Iterable[CloudInstance]) -> dict[str, CloudInstance]:
    """Return, by node, the instances that ended and were not replaced: for each node, the last one."""
    lab_instances = select_lab_instances(lab, instances)
    alive = {instance.node for instance in lab_instances if instance.alive}
    return {instance.node: instance for instance in lab_instances if not instance.alive and instance.node not in alive}


def find_lost_nodes(context: Context, deployment: AwsDeployment) -> dict[str, str]:
    """Return the recorded nodes that no longer exist in the account, by name, with the reason. A stopped node is not lost.

    If the account does not answer, or the credentials belong to another account, the lost nodes are unknown: return an empty
    dictionary.
    """
    try:
        lab_instances = instances.find(account_of(context.environ, deployment), stack=deployment.uid)
    except GpucourseError:
        return {}
    present, lost_instances = (
        {instance.node for instance in lab_instances if instance.alive},
        find_lost_instances(deployment, lab_instances),
    )
    return {
        node.name: describe_termination(lost_instances[node.name], deployment.cloud.expires)
        if node.name in lost_instances
        else f"{node.name}: AWS no longer lists it"
        for node in deployment.nodes
        if node.name not in present
    }
