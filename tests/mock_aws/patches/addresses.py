"""Addresses of instances."""

from __future__ import annotations

import itertools

from moto.ec2.models import elastic_network_interfaces

from tests.mock_aws.state import State

_given = itertools.count(1)


def install(_state: State) -> None:
    """See each function."""
    give_every_instance_another_public_address()


def give_every_instance_another_public_address() -> None:
    """moto draws them at random and may draw one twice; by its address an instance is found here."""

    def next_address() -> str:
        number = next(_given)
        return f"54.214.{number // 250}.{number % 250 + 1}"

    vars(elastic_network_interfaces)["random_public_ip"] = next_address
