"""The kinds of resources that the course can leave behind, in the order of removal.

Each has a call that finds it by its tags, and calls that remove it. A container comes after its contents: instances come before
the network, and the backstop's schedules and role come last.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

POLICY_NAME = "terminate-own"  # the one policy of the backstop's role


@dataclass(frozen=True)
class ApiCall:
    """One call: a service, boto3's name of the operation, and its parameters."""

    service: str
    operation: str
    parameters: Mapping[str, Any]

    def command(self, region: str) -> str:
        """Return the call as a command of the AWS CLI, ready to paste."""
        words = ["aws", self.service, self.operation.replace("_", "-"), "--region", region]
        for name, value in self.parameters.items():
            words.append("--" + re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower())
            words += [shlex.quote(str(item)) for item in (value if isinstance(value, (list, tuple)) else [value])]
        return " ".join(words)


@dataclass(frozen=True)
class Kind:
    """One kind of resource: the operations that list and delete it, and the key of its id in the answer.

    `delete_key`: the key of the value that the deletion needs, if this is not the id.
    `accepts_list`: the deletion accepts a list.
    `prepare`: returns the calls to make before the deletion.
    `states`: filters that leave out resources that no longer exist.
    `label`: the key of the resource's name in the answer.
    """

    name: str
    operation: str
    id: str
    delete: str
    delete_key: str = ""
    accepts_list: bool = False
    prepare: Callable[[dict[str, Any]], list[ApiCall]] = lambda _item: []
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    label: str = ""
    service: str = "ec2"

    @property
    def key(self) -> str:
        """Return the key under which AWS's answer has the list: for `describe_key_pairs`, `KeyPairs`."""
        return "".join(word.title() for word in self.operation.split("_")[1:])

    def remove(self, item: dict[str, Any]) -> list[ApiCall]:
        """Return the calls that remove this resource, in order."""
        parameter = self.delete_key or self.id
        parameters = {f"{parameter}s": [item[parameter]]} if self.accepts_list else {parameter: item[parameter]}
        return [*self.prepare(item), ApiCall(self.service, self.delete, parameters)]


def _detach_interface(item: dict[str, Any]) -> list[ApiCall]:
    attachment = (item.get("Attachment") or {}).get("AttachmentId")
    return [ApiCall("ec2", "detach_network_interface", {"AttachmentId": attachment})] if attachment else []


def _disassociate_address(item: dict[str, Any]) -> list[ApiCall]:
    association = item.get("AssociationId")
    return [ApiCall("ec2", "disassociate_address", {"AssociationId": association})] if association else []


def _disassociate_table(item: dict[str, Any]) -> list[ApiCall]:
    association_ids = [link["RouteTableAssociationId"] for link in item.get("Associations") or () if not link.get("Main")]
    return [ApiCall("ec2", "disassociate_route_table", {"AssociationId": link}) for link in association_ids]


def _detach_gateway(item: dict[str, Any]) -> list[ApiCall]:
    gateway = item["InternetGatewayId"]
    return [
        ApiCall("ec2", "detach_internet_gateway", {"InternetGatewayId": gateway, "VpcId": network["VpcId"]})
        for network in item.get("Attachments") or ()
    ]


def _delete_policy(item: dict[str, Any]) -> list[ApiCall]:
    return [ApiCall("iam", "delete_role_policy", {"RoleName": item["RoleName"], "PolicyName": POLICY_NAME})]


SPOT_REQUEST = Kind(
    "spot request",
    "describe_spot_instance_requests",
    "SpotInstanceRequestId",
    "cancel_spot_instance_requests",
    accepts_list=True,
    states={"state": ("open", "active", "disabled")},
)
INSTANCE = Kind(
    "instance",
    "describe_instances",
    "InstanceId",
    "terminate_instances",
    accepts_list=True,
    states={"instance-state-name": ("pending", "running", "stopping", "stopped", "shutting-down")},
    label="InstanceType",
)
MOUNT_TARGET = Kind("mount target", "describe_mount_targets", "MountTargetId", "delete_mount_target", service="efs")
FILE_SYSTEM = Kind("file system", "describe_file_systems", "FileSystemId", "delete_file_system", label="Name", service="efs")
ADDRESS = Kind(
    "elastic address", "describe_addresses", "AllocationId", "release_address", prepare=_disassociate_address, label="PublicIp"
)
INTERFACE = Kind(
    "network interface",
    "describe_network_interfaces",
    "NetworkInterfaceId",
    "delete_network_interface",
    prepare=_detach_interface,
)
VOLUME = Kind(
    "volume",
    "describe_volumes",
    "VolumeId",
    "delete_volume",
    states={"status": ("creating", "available", "in-use", "error")},
    label="VolumeType",
)
PLACEMENT_GROUP = Kind(
    "placement group",
    "describe_placement_groups",
    "GroupId",
    "delete_placement_group",
    delete_key="GroupName",
    states={"state": ("pending", "available")},
    label="GroupName",
)
KEY_PAIR = Kind("key pair", "describe_key_pairs", "KeyPairId", "delete_key_pair", delete_key="KeyName", label="KeyName")
SECURITY_GROUP = Kind("security group", "describe_security_groups", "GroupId", "delete_security_group", label="GroupName")
ROUTE_TABLE = Kind("route table", "describe_route_tables", "RouteTableId", "delete_route_table", prepare=_disassociate_table)
SUBNET = Kind("subnet", "describe_subnets", "SubnetId", "delete_subnet", label="CidrBlock")
GATEWAY = Kind(
    "internet gateway",
    "describe_internet_gateways",
    "InternetGatewayId",
    "delete_internet_gateway",
    prepare=_detach_gateway,
)
NETWORK = Kind("VPC", "describe_vpcs", "VpcId", "delete_vpc", label="CidrBlock")
SCHEDULES = Kind("schedule group", "list_schedule_groups", "Name", "delete_schedule_group", label="Name", service="scheduler")
ROLE = Kind("role", "list_roles", "RoleName", "delete_role", prepare=_delete_policy, label="RoleName", service="iam")

KINDS = (
    SPOT_REQUEST,
    INSTANCE,
    MOUNT_TARGET,
    FILE_SYSTEM,
    ADDRESS,
    INTERFACE,
    VOLUME,
    PLACEMENT_GROUP,
    KEY_PAIR,
    SECURITY_GROUP,
    ROUTE_TABLE,
    SUBNET,
    GATEWAY,
    NETWORK,
    SCHEDULES,
    ROLE,
)
OTHER = "other"
ORDER = (*(kind.name for kind in KINDS), OTHER)
