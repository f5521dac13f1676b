"""The network interface that leads from one node to the others, according to the node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import GpucourseError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.runs.connect import interfaces
from tests.unit.labs.aws.fakes import fleet_of, make_completed, node

HEAD = node("node0", role="head", address="10.77.1.5")
WORKER = node("node1", address="10.77.1.6")


def answer(node: Node, command: str) -> CommandResult:
    """Return the output of `ip -o route get` on a machine of AWS."""
    peer = command.rsplit(maxsplit=1)[-1]
    if peer == node.private_address:
        return make_completed(f"local {peer} dev lo src {peer} uid 1000 \\    cache <local>\n")
    return make_completed(f"{peer} dev ens5 src {node.private_address} uid 1000 \\    cache\n")


def test_interfaces_of_the_head_are_on_its_way_to_another_node() -> None:
    assert interfaces(fleet_of(answer, HEAD, WORKER), [HEAD, WORKER]) == {"node0": "ens5", "node1": "ens5"}


def test_interfaces_of_a_node_alone_are_loopback() -> None:
    assert interfaces(fleet_of(answer, HEAD), [HEAD]) == {"node0": "lo"}


def test_interfaces_of_simulated_nodes_are_loopback() -> None:
    def nobody(_node: Node, _command: str) -> CommandResult:
        raise AssertionError("asked")

    local = [replace(node, mode="local", private_address="127.0.0.1") for node in (HEAD, WORKER)]
    assert set(interfaces(fleet_of(nobody, *local), local).values()) <= {"lo", "lo0"}


def test_interfaces_names_a_node_without_a_route() -> None:
    def have_no_route(_node: Node, _command: str) -> CommandResult:
        return make_completed(code=2, complaint="RTNETLINK answers: Network is unreachable\n")

    with pytest.raises(GpucourseError, match=r"node1 has no route to node0 at 10\.77\.1\.5: RTNETLINK"):
        interfaces(fleet_of(have_no_route, HEAD, WORKER), [HEAD, WORKER])
