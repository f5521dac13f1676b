"""One outcome for each node, in order, and one error that names each failed node."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from gpucourse.errors import GpucourseError, MissingError, UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.fleet import combine_errors, do_on_each, values
from tests.unit.remote.test_keys import node
from tests.waiting import STUCK_S

NODES = [replace(node(0), name=f"node{number}") for number in range(8)]


def test_do_on_each_keeps_the_order_of_the_nodes() -> None:
    gate = threading.Event()

    def work(node: Node) -> str:
        if node.name == "node0":
            gate.wait(STUCK_S)
        elif node.name == "node7":
            gate.set()
        return node.name.upper()

    outcomes = do_on_each(NODES, work)
    assert [outcome.value for outcome in outcomes] == [f"NODE{number}" for number in range(8)]
    assert values(outcomes) == [f"NODE{number}" for number in range(8)]


def test_values_names_every_node_that_failed() -> None:
    def work(node: Node) -> int:
        if node.name in {"node3", "node7"}:
            raise UnreachableError(f"{node.name} does not answer", hint="look")
        return 1

    outcomes = do_on_each(NODES, work)
    assert [outcome.ok for outcome in outcomes] == [True] * 3 + [False] + [True] * 3 + [False]
    with pytest.raises(
        UnreachableError, match=r"^2 of 8 nodes failed: node3 does not answer; node7 does not answer$"
    ) as caught:
        values(outcomes)
    assert caught.value.hint == "look"
    with pytest.raises(UnreachableError, match=r"^node3 does not answer$"):
        outcomes[3].take()


def test_combine_errors_has_the_gravest_kind() -> None:
    errors: list[GpucourseError] = [MissingError("no torch", hint="install it"), UnreachableError("gone", hint="deploy")]

    def work(node: Node) -> None:
        raise errors[int(node.name[4:])]

    error = combine_errors(do_on_each(NODES[:2], work), of=2)
    assert type(error) is UnreachableError
    assert error.what == "2 of 2 nodes failed: node0: no torch; node1: gone"
    assert error.hint == "deploy"
