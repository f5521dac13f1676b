"""One outcome a node, in order; one error that names each."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from gpucourse.errors import GpucourseError, MissingError, StorageError, UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.fleet import Outcome, combine_errors, do_on_each, values
from tests.unit.remote.test_keys import node
from tests.waiting import STUCK_S

NODES = [replace(node(0), name=f"node{number}") for number in range(8)]


def test_outcomes_keep_the_order_whoever_is_first() -> None:
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


def test_no_more_at_once_than_asked() -> None:
    lock, now, most = threading.Lock(), 0, 0
    together = threading.Barrier(3)

    def work(_one: Node) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(STUCK_S)
        with lock:
            now -= 1

    do_on_each(NODES * 3, work, at_once=3)
    assert most == 3


def test_failures_stand_beside_successes_and_are_named() -> None:
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


def test_the_gravest_kind_decides_the_exit_code() -> None:
    errors: list[GpucourseError] = [MissingError("no torch", hint="install it"), UnreachableError("gone", hint="deploy")]

    def work(node: Node) -> None:
        raise errors[int(node.name[4:])]

    error = combine_errors(do_on_each(NODES[:2], work), of=2)
    assert type(error) is UnreachableError
    assert error.what == "2 of 2 nodes failed: node0: no torch; node1: gone"
    assert error.hint == "deploy"


def test_a_node_with_two_errors_is_one_node() -> None:
    both = [Outcome[None](node=NODES[0], error=UnreachableError(what)) for what in ("lost", "it has not ended")]
    assert combine_errors(both, of=1).what == "node0: lost; node0: it has not ended"
    assert combine_errors(both, of=2).what == "1 of 2 nodes failed: node0: lost; node0: it has not ended"


def test_one_node_alone_speaks_for_itself() -> None:
    def work(_one: Node) -> None:
        raise StorageError("no space")

    assert combine_errors(do_on_each(NODES[:1], work), of=1).what == "no space"


def test_many_failures_are_counted_not_all_listed() -> None:
    def work(_one: Node) -> None:
        raise UnreachableError("down")

    nodes = [replace(node(0), name=f"node{number}") for number in range(64)]
    assert combine_errors(do_on_each(nodes, work), of=64).what.endswith("node7: down; and 56 more")


def test_a_fault_is_not_an_outcome() -> None:
    def work(node: Node) -> None:
        if node.name == "node2":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        do_on_each(NODES, work)
