from __future__ import annotations

from dataclasses import replace

from gpucourse.model.node import Inventory
from tests.unit.ui.examples import node


def test_head_is_the_node_marked_as_it_or_the_first() -> None:
    head, worker = node(0), node(1)
    assert Inventory(stack="s", nodes=(worker, head)).head == head
    assert Inventory(stack="s", nodes=(worker, replace(head, role="worker"))).head == worker
    assert Inventory(stack="s", nodes=(worker, head)).find_node("node0") == head
    assert Inventory(stack="s").find_node("node0") is None


def test_label_of_a_node_is_what_the_learner_typed() -> None:
    assert (node(0).label, replace(node(0), typed="me@gpu1").label) == ("node0", "me@gpu1")
