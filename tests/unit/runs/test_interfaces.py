"""Which interface leads from one node to the others, asked of the node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import GpucourseError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.runs.interfaces import interfaces
from tests.unit.labs.aws.fakes import fleet_of, make_completed, node

HEAD = node("node0", role="head", address="10.77.1.5")
WORKER = node("node1", address="10.77.1.6")


def answer(node: Node, command: str) -> CommandResult:
    """What `ip -o route get` says on a machine of AWS."""
    peer = command.rsplit(maxsplit=1)[-1]
    if peer == node.private_address:
        return make_completed(f"local {peer} dev lo src {peer} uid 1000 \\    cache <local>\n")
    return make_completed(f"{peer} dev ens5 src {node.private_address} uid 1000 \\    cache\n")


def test_the_head_is_asked_for_its_way_to_another_node_and_not_to_itself() -> None:
    assert interfaces(fleet_of(answer, HEAD, WORKER), [HEAD, WORKER]) == {"node0": "ens5", "node1": "ens5"}


def test_a_node_alone_meets_itself() -> None:
    assert interfaces(fleet_of(answer, HEAD), [HEAD]) == {"node0": "lo"}


def test_simulated_nodes_are_not_asked() -> None:
    def nobody(_node: Node, _command: str) -> CommandResult:
        raise AssertionError("asked")

    local = [replace(node, mode="local", private_address="127.0.0.1") for node in (HEAD, WORKER)]
    assert set(interfaces(fleet_of(nobody, *local), local).values()) <= {"lo", "lo0"}


def test_no_way_names_the_node() -> None:
    def have_no_route(_node: Node, _command: str) -> CommandResult:
        return make_completed(code=2, complaint="RTNETLINK answers: Network is unreachable\n")

    with pytest.raises(GpucourseError, match=r"node1 has no route to node0 at 10\.77\.1\.5: RTNETLINK"):
        interfaces(fleet_of(have_no_route, HEAD, WORKER), [HEAD, WORKER])
