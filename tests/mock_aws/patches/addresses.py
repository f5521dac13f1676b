"""Addresses of instances."""

from __future__ import annotations

import itertools
from typing import Any

from moto.ec2.models import elastic_network_interfaces
from moto.ec2.models.instances import Instance
from moto.ec2.models.subnets import Subnet

from tests.mock_aws.state import State

_given = itertools.count(1)


def install(state: State) -> None:
    """Apply the patches of this file."""
    give_every_instance_another_public_address()
    let_computers_reach_each_other(state)


def give_every_instance_another_public_address() -> None:
    """Give each instance a different public address. moto chooses addresses at random and may repeat one, but an instance is
    found here by its address.
    """

    def next_address() -> str:
        number = next(_given)
        return f"54.214.{number // 250}.{number % 250 + 1}"

    vars(elastic_network_interfaces)["random_public_ip"] = next_address


def let_computers_reach_each_other(state: State) -> None:
    """Give each instance the private address at which the others reach its computer."""
    usual, freed = Subnet.get_available_subnet_ip, Subnet.del_subnet_ip
    values: dict[str, str] = {}

    def get_available_subnet_ip(self: Any, instance: Any) -> str:
        subnet_ip = usual(self, instance)
        if state.computers is None or not isinstance(instance, Instance):
            return subnet_ip
        address = state.computers.address(subnet_ip)
        values[address] = subnet_ip
        return address

    def del_subnet_ip(self: Any, ip: str) -> None:
        freed(self, values.pop(ip, ip))

    Subnet.get_available_subnet_ip = get_available_subnet_ip  # type: ignore[method-assign]
    Subnet.del_subnet_ip = del_subnet_ip  # type: ignore[method-assign]
