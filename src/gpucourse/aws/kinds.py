"""The kinds of resources that the course can leave behind, in the order of removal: how each is found by its tags, and the
calls that remove it.

A container comes after its contents: instances before the network, the backstop's schedules last of all.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ApiCall:
    """One call: a service, boto3's name of the operation, and its parameters."""

    service: str
    operation: str
    parameters: Mapping[str, Any]

    def command(self, region: str) -> str:
        """Return the same call as a command of the AWS CLI, ready to paste."""
        words = ["aws", self.service, self.operation.replace("_", "-"), "--region", region]
        for name, value in self.parameters.items():
            words.append("--" + re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower())
            words += [shlex.quote(str(item)) for item in (value if isinstance(value, (list, tuple)) else [value])]
        return " ".join(words)


@dataclass(frozen=True)
class Kind:
    """One kind of EC2 resource that carries tags: the call that lists it, and the calls that remove one."""

    name: str
    operation: str
    key: str
    id: str
    remove: Callable[[dict[str, Any]], list[ApiCall]]
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    label: str = ""


def _ec2(operation: str, **parameters: Any) -> ApiCall:
    return ApiCall("ec2", operation, parameters)


def _network_interface(item: dict[str, Any]) -> list[ApiCall]:
    attachment = (item.get("Attachment") or {}).get("AttachmentId")
    detach = [_ec2("detach_network_interface", AttachmentId=attachment)] if attachment else []
    return [*detach, _ec2("delete_network_interface", NetworkInterfaceId=item["NetworkInterfaceId"])]


def _address(item: dict[str, Any]) -> list[ApiCall]:
    association = item.get("AssociationId")
    free = [_ec2("disassociate_address", AssociationId=association)] if association else []
    return [*free, _ec2("release_address", AllocationId=item["AllocationId"])]


def _route_table(item: dict[str, Any]) -> list[ApiCall]:
    bound = [link["RouteTableAssociationId"] for link in item.get("Associations") or () if not link.get("Main")]
    free = [_ec2("disassociate_route_table", AssociationId=link) for link in bound]
    return [*free, _ec2("delete_route_table", RouteTableId=item["RouteTableId"])]


def _internet_gateway(item: dict[str, Any]) -> list[ApiCall]:
    gateway = item["InternetGatewayId"]
    free = [
        _ec2("detach_internet_gateway", InternetGatewayId=gateway, VpcId=network["VpcId"])
        for network in item.get("Attachments") or ()
    ]
    return [*free, _ec2("delete_internet_gateway", InternetGatewayId=gateway)]


def _simple(
    operation: str, parameter: str, key: str = "", *, listed: bool = False
) -> Callable[[dict[str, Any]], list[ApiCall]]:
    def steps(item: dict[str, Any]) -> list[ApiCall]:
        value = item[key or parameter]
        return [_ec2(operation, **{parameter: [value] if listed else value})]

    return steps


SPOT_REQUEST = Kind(
    "spot request",
    "describe_spot_instance_requests",
    "SpotInstanceRequests",
    "SpotInstanceRequestId",
    _simple("cancel_spot_instance_requests", "SpotInstanceRequestIds", "SpotInstanceRequestId", listed=True),
    {"state": ("open", "active", "disabled")},
)
INSTANCE = Kind(
    "instance",
    "describe_instances",
    "Instances",
    "InstanceId",
    _simple("terminate_instances", "InstanceIds", "InstanceId", listed=True),
    {"instance-state-name": ("pending", "running", "stopping", "stopped", "shutting-down")},
    label="InstanceType",
)
ADDRESS = Kind("elastic address", "describe_addresses", "Addresses", "AllocationId", _address, label="PublicIp")
INTERFACE = Kind(
    "network interface", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", _network_interface
)
VOLUME = Kind(
    "volume",
    "describe_volumes",
    "Volumes",
    "VolumeId",
    _simple("delete_volume", "VolumeId"),
    {"status": ("creating", "available", "in-use", "error")},
    label="VolumeType",
)
PLACEMENT_GROUP = Kind(
    "placement group",
    "describe_placement_groups",
    "PlacementGroups",
    "GroupId",
    _simple("delete_placement_group", "GroupName"),
    {"state": ("pending", "available")},
    label="GroupName",
)
KEY_PAIR = Kind(
    "key pair", "describe_key_pairs", "KeyPairs", "KeyPairId", _simple("delete_key_pair", "KeyName"), label="KeyName"
)
SECURITY_GROUP = Kind(
    "security group",
    "describe_security_groups",
    "SecurityGroups",
    "GroupId",
    _simple("delete_security_group", "GroupId"),
    label="GroupName",
)
ROUTE_TABLE = Kind("route table", "describe_route_tables", "RouteTables", "RouteTableId", _route_table)
SUBNET = Kind("subnet", "describe_subnets", "Subnets", "SubnetId", _simple("delete_subnet", "SubnetId"), label="CidrBlock")
GATEWAY = Kind("internet gateway", "describe_internet_gateways", "InternetGateways", "InternetGatewayId", _internet_gateway)
NETWORK = Kind("VPC", "describe_vpcs", "Vpcs", "VpcId", _simple("delete_vpc", "VpcId"), label="CidrBlock")

KINDS = (
    SPOT_REQUEST,
    INSTANCE,
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
)
MOUNT_TARGET, FILE_SYSTEM, SCHEDULES, ROLE, OTHER = "mount target", "file system", "schedule group", "role", "other"

ORDER = (
    SPOT_REQUEST.name,
    INSTANCE.name,
    MOUNT_TARGET,
    FILE_SYSTEM,
    ADDRESS.name,
    INTERFACE.name,
    VOLUME.name,
    PLACEMENT_GROUP.name,
    KEY_PAIR.name,
    SECURITY_GROUP.name,
    ROUTE_TABLE.name,
    SUBNET.name,
    GATEWAY.name,
    NETWORK.name,
    SCHEDULES,
    ROLE,
    OTHER,
)


def role_steps(role: str, policy: str) -> list[ApiCall]:
    """Return the calls that remove a role with its one policy."""
    return [
        ApiCall("iam", "delete_role_policy", {"RoleName": role, "PolicyName": policy}),
        ApiCall("iam", "delete_role", {"RoleName": role}),
    ]
