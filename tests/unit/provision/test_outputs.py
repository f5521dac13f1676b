"""The output contract, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.errors import InfrastructureError
from gpucourse.provision.outputs import inventory


def node(number: int = 0, **changed: Any) -> dict[str, Any]:
    made = {
        "name": f"node{number}",
        "role": "worker" if number else "head",
        "address": "127.0.0.1",
        "port": 2200 + number,
        "private_address": "127.0.0.1",
        "user": "ann",
        "gpus": 0,
        "instance_type": "simulated",
        "python": "/usr/bin/python3",
        "mode": "local",
        "host_key": "ssh-ed25519 AAAA",
    }
    return {**made, **changed}


def outputs(*nodes: Any) -> dict[str, Any]:
    return {"nodes": {"sensitive": False, "type": ["tuple", []], "value": list(nodes)}, "other": {"value": 1}}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in node().items() if key != name}


def test_inventory_has_the_head_first() -> None:
    nodes_in_order = inventory("03-local", outputs(node(1), node(2), node(0)))
    assert [item.name for item in nodes_in_order.nodes] == ["node0", "node1", "node2"]
    assert nodes_in_order.head.port == 2200
    assert nodes_in_order.stack == "03-local"
    assert nodes_in_order.nodes[0].host_key == "ssh-ed25519 AAAA"
    assert inventory("s", outputs(without("host_key"))).nodes[0].host_key == ""


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (None, "`nodes` is missing"),
        ({"nodes": 3}, "`nodes` is missing"),
        ({"nodes": {"sensitive": True}}, "`nodes` is marked sensitive"),
        ({"nodes": {"value": None}}, "`nodes` must be a list with at least one node, not null"),
        (outputs(), "`nodes` must be a list with at least one node, not []"),
        ({"nodes": {"value": {"a": 1}}}, "not {'a': 1}"),
        (outputs("x"), "`nodes[0]` must be an object, not 'x'"),
        (outputs(node(), without("port")), "`nodes[1].port` is missing"),
        (outputs(node(nmae="x")), "`nodes[0].nmae` is not a field of a node"),
        (outputs(node(port="2200")), "`nodes[0].port` must be a whole number from 1 to 65535, not '2200'"),
        (outputs(node(port=True)), "`nodes[0].port` must be a whole number"),
        (outputs(node(port=70000)), "`nodes[0].port` must be a whole number from 1 to 65535, not 70000"),
        (outputs(node(gpus=None)), "`nodes[0].gpus` must be a whole number from 0 to 1024, not null"),
        (outputs(node(user=None)), "`nodes[0].user` must be text, not null"),
        (outputs(node(address="")), "`nodes[0].address` is empty"),
        (outputs(node(role="boss")), "`nodes[0].role` must be head or worker, not 'boss'"),
        (outputs(node(1)), "`nodes` must have exactly one node with the role head, not 0"),
        (outputs(node(), node(1, name="node0")), "`nodes` has 2 nodes with the name node0"),
        (outputs(node(), node(1, port=2200)), "`nodes` has 2 nodes at 127.0.0.1:2200"),
    ],
)
def test_inventory_names_what_is_wrong(value: Any, complaint: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        inventory("03-local", value)
    assert complaint in caught.value.what
    assert "gpucourse destroy" in caught.value.hint


def test_inventory_names_nodes_that_did_not_come_up() -> None:
    with pytest.raises(
        InfrastructureError, match="2 of 3 nodes of 03-local did not come up: number 0, 2, counted from 0"
    ) as caught:
        inventory("03-local", outputs(None, node(0), None))
    assert "gpucourse deploy" in caught.value.hint
