"""The output contract, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.errors import InfrastructureError
from gpucourse.provision.stack import inventory


def node(number: int = 0, **changes: Any) -> dict[str, Any]:
    entry = {
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
    return {**entry, **changes}


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
        (None, "`nodes` is not a list"),
        (outputs(), "`nodes` is not a list with at least one node"),
        (outputs("x"), "Expected `object`, got `str` - at `$[0]`"),
        (outputs(node(), without("port")), "missing required field `port` - at `$[1]`"),
        (outputs(node(port="2200")), "Expected `int`, got `str` - at `$[0].port`"),
        (outputs(node(port=70000)), "has the port 70000"),
        (outputs(node(gpus=-1)), "has the port 2200 and -1 GPUs for node0"),
        (outputs(node(address="")), "has no address for node0"),
        (outputs(node(role="boss")), "'boss' - at `$[0].role`"),
        (outputs(node(1)), "must have exactly one node with the role head, not 0"),
        (outputs(node(), node(1, name="node0")), "has 2 nodes called node0"),
        (outputs(node(), node(1, port=2200)), "has 2 nodes called 127.0.0.1:2200"),
    ],
)
def test_inventory_names_what_is_wrong(value: Any, complaint: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        inventory("03-local", value)
    assert complaint in caught.value.what
    assert "gpucourse destroy" in caught.value.hint


def test_inventory_names_nodes_that_did_not_come_up() -> None:
    with pytest.raises(
        InfrastructureError, match="2 of 3 nodes of 03-local did not start: number 0, 2, counted from 0"
    ) as caught:
        inventory("03-local", outputs(None, node(0), None))
    assert "gpucourse deploy" in caught.value.hint
