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
    """See each function."""
    give_every_instance_another_public_address()
    let_computers_reach_each_other(state)


def give_every_instance_another_public_address() -> None:
    """moto draws them at random and may draw one twice; by its address an instance is found here."""

    def next_address() -> str:
        number = next(_given)
        return f"54.214.{number // 250}.{number % 250 + 1}"

    vars(elastic_network_interfaces)["random_public_ip"] = next_address


def let_computers_reach_each_other(state: State) -> None:
    """The computers behind the instances are all this machine, which answers under every 127.x.y.z (on Linux) and under no
    10.x.y.z: there an instance's private address begins with 127."""
    usual, freed = Subnet.get_available_subnet_ip, Subnet.del_subnet_ip

    def get_available_subnet_ip(self: Any, instance: Any) -> str:
        found = usual(self, instance)
        if state.computers is None or not isinstance(instance, Instance):
            return found
        return f"127.{found.partition('.')[2]}"

    def del_subnet_ip(self: Any, ip: str) -> None:
        own = str(self.cidr.network_address).partition(".")[0]
        freed(self, f"{own}.{ip.partition('.')[2]}" if ip.startswith("127.") else ip)

    Subnet.get_available_subnet_ip = get_available_subnet_ip  # type: ignore[method-assign]
    Subnet.del_subnet_ip = del_subnet_ip  # type: ignore[method-assign]
