"""What cannot be deleted while something else stands on it. moto deletes most of it; AWS answers DependencyViolation."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.internet_gateways import InternetGatewayBackend
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend

from tests.mock_aws.patches.books import list_instances
from tests.mock_aws.refusal_error import RefusalError
from tests.mock_aws.state import State


def install(_state: State) -> None:
    """See each function."""
    keep_a_subnet_with_interfaces()
    keep_a_group_in_use()
    keep_a_vpc_with_anything_in_it()
    keep_a_gateway_that_instances_answer_through()


def keep_a_subnet_with_interfaces() -> None:
    """Instances and mount targets have theirs in it."""
    usual = SubnetBackend.delete_subnet

    def delete(self: Any, subnet_id: str) -> Any:
        _refuse_if(_interfaces(self, subnet=subnet_id), f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
        return usual(self, subnet_id)

    SubnetBackend.delete_subnet = delete  # type: ignore[method-assign]


def keep_a_group_in_use() -> None:
    """By an interface, or by a rule of another group."""
    usual = SecurityGroupBackend._delete_security_group

    def delete(self: Any, vpc_id: str | None, group_id: str) -> None:
        used = [eni.id for eni in self.enis.values() if group_id in {group.id for group in eni.group_set}]
        used += [
            group.id
            for groups in self.groups.values()
            for group in groups.values()
            if group.id != group_id
            and any(rule.source_group.get("GroupId") == group_id for rule in [*group.ingress_rules, *group.egress_rules])
        ]
        _refuse_if(used, f"resource {group_id} has a dependent object")
        usual(self, vpc_id, group_id)

    SecurityGroupBackend._delete_security_group = delete  # type: ignore[method-assign]


def keep_a_vpc_with_anything_in_it() -> None:
    """moto looks for subnets and route tables; AWS also for groups beside the default one, gateways and interfaces."""
    usual = VPCBackend.delete_vpc

    def delete(self: Any, vpc_id: str) -> Any:
        used = _interfaces(self, vpc=vpc_id)
        used += [group.id for group in self.groups.get(vpc_id, {}).values() if group.name != "default"]
        used += [gateway.id for gateway in self.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
        _refuse_if(used, f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
        return usual(self, vpc_id)

    VPCBackend.delete_vpc = delete  # type: ignore[method-assign]


def keep_a_gateway_that_instances_answer_through() -> None:
    """Not while a public address of the network is mapped through it."""
    usual = InternetGatewayBackend.detach_internet_gateway

    def detach(self: Any, internet_gateway_id: str, vpc_id: str) -> None:
        mapped = [instance.id for instance in list_instances(self) if instance.vpc_id == vpc_id and instance.public_ip]
        _refuse_if(mapped, f"Network {vpc_id} has some mapped public address(es). Please unmap those before detaching.")
        usual(self, internet_gateway_id, vpc_id)

    InternetGatewayBackend.detach_internet_gateway = detach  # type: ignore[method-assign]


def _interfaces(backend: Any, *, subnet: str = "", vpc: str = "") -> list[str]:
    return [eni.id for eni in backend.enis.values() if eni.subnet.id == subnet or eni.subnet.vpc_id == vpc]


def _refuse_if(used: list[str], message: str) -> None:
    if used:
        raise RefusalError("DependencyViolation", message)
