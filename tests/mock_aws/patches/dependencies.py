"""Resources that cannot be deleted while others depend on them. moto deletes most of them; AWS answers DependencyViolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.models.internet_gateways import InternetGatewayBackend
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend

from tests.mock_aws.call import RefusalError
from tests.mock_aws.state import State, list_instances


def install(_state: State) -> None:
    """Refuse each deletion of a resource that is in use."""
    _keep(SubnetBackend, "delete_subnet", _find_interfaces)
    _keep(SecurityGroupBackend, "_delete_security_group", _find_users_of_a_group)
    _keep(VPCBackend, "delete_vpc", _find_parts_of_a_vpc)
    _keep(InternetGatewayBackend, "detach_internet_gateway", _find_mapped_addresses)


def _keep(owner: Any, name: str, find_users: Callable[..., list[str]]) -> None:
    usual = getattr(owner, name)

    def method(self: Any, *args: Any) -> Any:
        if users := find_users(self, *args):
            raise RefusalError("DependencyViolation", f"{args[0]} has dependencies and cannot be deleted: {', '.join(users)}")
        return usual(self, *args)

    setattr(owner, name, method)


def _find_interfaces(books: Any, place: str) -> list[str]:
    """Return the interfaces of instances and mount targets in a subnet or a VPC."""
    return [eni.id for eni in books.enis.values() if place in {eni.subnet.id, eni.subnet.vpc_id}]


def _find_users_of_a_group(books: Any, _vpc_id: str | None, group_id: str) -> list[str]:
    """Return the interfaces in a security group, and other groups whose rules name it."""
    users = [eni.id for eni in books.enis.values() if group_id in {group.id for group in eni.group_set}]
    for group in (group for groups in books.groups.values() for group in groups.values() if group.id != group_id):
        rules = [*group.ingress_rules, *group.egress_rules]
        users += [group.id for rule in rules if rule.source_group.get("GroupId") == group_id]
    return users


def _find_parts_of_a_vpc(books: Any, vpc_id: str) -> list[str]:
    """Return the parts of a VPC that moto does not look for: groups besides the default one, gateways and interfaces."""
    groups = [group.id for group in books.groups.get(vpc_id, {}).values() if group.name != "default"]
    gateways = [gateway.id for gateway in books.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
    return [*_find_interfaces(books, vpc_id), *groups, *gateways]


def _find_mapped_addresses(books: Any, _gateway_id: str, vpc_id: str) -> list[str]:
    """Return the instances with a public address, which is mapped through the gateway."""
    return [instance.id for instance in list_instances(books) if instance.vpc_id == vpc_id and instance.public_ip]
