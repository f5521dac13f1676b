"""What AWS itself reports about a lab of the live hour; a mock account could only repeat what it was given."""

from __future__ import annotations

from typing import Any

from gpucourse.aws import instances, schedule, tags
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import CloudError, GpucourseError
from gpucourse.labs.aws.account import account_of
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.deployment import AwsDeployment
from gpucourse.workspace import deployments

_ATTRIBUTE = "instanceInitiatedShutdownBehavior"


def read_module_facts(context: Context, module: str) -> dict[str, Any]:
    """Return the facts of each lab of that module, by its stack; if AWS refuses, the error with AWS's message."""
    labs = [lab for lab in deployments.of_module(context.paths, module) if isinstance(lab, AwsDeployment)]
    try:
        return {lab.stack: read_facts(account_of(context, lab), lab) for lab in labs}
    except GpucourseError as error:
        return {"error": error.what}


def read_facts(account: Account, deployment: AwsDeployment) -> dict[str, Any]:
    """Return the lab's instances, spot requests and schedules as AWS reports them. Raises the errors of `Account.call`."""
    nodes = instances.find(account, stack=deployment.uid)
    return {
        "expires": deployment.cloud.expires,
        "instances": [_describe(account, node) for node in nodes],
        "spot_requests": _list_spot_requests(account, [node.id for node in nodes if node.market == "spot"]),
        "file_systems": _list_file_systems(account, deployment.uid),
        "schedules": {
            name: end.isoformat() for name, end in schedule.read_scheduled_ends(account, stack=deployment.uid).items()
        },
    }


def _describe(account: Account, node: CloudInstance) -> dict[str, Any]:
    answer = account.call("ec2", "describe_instance_attribute", InstanceId=node.id, Attribute=_ATTRIBUTE)
    console = account.call("ec2", "get_console_output", InstanceId=node.id)
    return {
        "id": node.id,
        "type": node.instance_type,
        "zone": node.zone,
        "market": node.market,
        "state": node.state,
        "launched": node.launched.isoformat(),
        "when_it_powers_off": answer["InstanceInitiatedShutdownBehavior"]["Value"],
        "told_to_end_when_it_powers_off": _tell_to_end(account, node.id) if node.market == "spot" else "not asked",
        "characters_of_console": len(str(console.get("Output", ""))),
    }


def _tell_to_end(account: Account, instance: str) -> str:
    """Return how EC2 answers to what Terraform's provider would send for a spot instance: this answer is not documented."""
    try:
        account.call(
            "ec2", "modify_instance_attribute", InstanceId=instance, InstanceInitiatedShutdownBehavior={"Value": "terminate"}
        )
    except CloudError as error:
        return f"{error.cloud_code}: {error.message}"
    except GpucourseError as error:
        return error.what
    return "accepted"


def _list_spot_requests(account: Account, ids: list[str]) -> list[dict[str, Any]]:
    if not ids:
        return []
    filters = [{"Name": "instance-id", "Values": ids}]
    return [
        {
            "id": request["SpotInstanceRequestId"],
            "type": request.get("Type", ""),
            "state": request.get("State", ""),
            "status": (request.get("Status") or {}).get("Code", ""),
            "tags": tags.of(request),
        }
        for request in account.pages("ec2", "describe_spot_instance_requests", "SpotInstanceRequests", Filters=filters)
    ]


def _list_file_systems(account: Account, stack: str) -> list[dict[str, Any]]:
    return [
        {"id": system["FileSystemId"], "state": system["LifeCycleState"], "bytes": system["SizeInBytes"]["Value"]}
        for system in account.pages("efs", "describe_file_systems", "FileSystems")
        if tags.of(system).get("Stack") == stack
    ]
