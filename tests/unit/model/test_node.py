from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.model.node import Inventory, Way
from tests.unit.ui.examples import node


def test_head_is_the_node_marked_as_it_or_the_first() -> None:
    head, worker = node(0), node(1)
    assert Inventory(stack="s", nodes=(worker, head)).head == head
    assert Inventory(stack="s", nodes=(worker, replace(head, role="worker"))).head == worker
    assert Inventory(stack="s", nodes=(worker, head)).find_node("node0") == head
    assert Inventory(stack="s").find_node("node0") is None


@pytest.mark.parametrize(
    ("typed", "way", "login", "words"),
    [
        ("uni", "openssh", "uni", "ssh uni"),
        ("me@uni:2222", "openssh", "me@uni:2222", "ssh -p 2222 me@uni"),
        ("me@[fe80::1]:2222", "openssh", "me@[fe80::1]:2222", "ssh -p 2222 me@fe80::1"),
        ("uni", "", "me@10.0.0.7:22", "ssh me@10.0.0.7"),
        ("laptop", "here", "laptop", ""),
    ],
)
def test_login_of_a_node_is_what_was_typed_if_ssh_finds_the_way(typed: str, way: Way, login: str, words: str) -> None:
    machine = replace(node(0), address="10.0.0.7", port=22, user="me", typed=typed, way=way)
    assert (machine.login, " ".join(machine.ssh_words)) == (login, words)


def test_label_of_a_node_is_what_the_learner_typed() -> None:
    assert (node(0).label, replace(node(0), typed="me@gpu1").label) == ("node0", "me@gpu1")
