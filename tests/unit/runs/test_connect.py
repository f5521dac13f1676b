from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import MissingError, UnreachableError
from gpucourse.model.node import Node
from gpucourse.ports import Link
from gpucourse.runs.connect import Connections, nodes_of
from tests.learning import Learning, deploy
from tests.unit.ui.examples import deployment, record


class SilentNodes:
    """A transport to nodes that do not answer, and the nodes that were tried. Implements ports.Transport."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def connect(self, node: Node, **_options: object) -> Link:
        self.tried.append(node.name)
        raise UnreachableError(f"{node.name} does not answer")


def test_reach_run_does_not_wait_a_second_time_for_a_node_that_does_not_answer(learning: Learning) -> None:
    run, nodes = learning.record(), SilentNodes()
    with Connections(replace(learning.context, make_transport=lambda _key: nodes)) as connections:
        with pytest.raises(MissingError, match=f"the nodes of run {run.id} are gone"):
            connections.reach_run(run)
        deploy(learning)
        for _ in range(2):
            with pytest.raises(UnreachableError, match="node0 does not answer"):
                connections.reach_run(run)
    assert nodes.tried == ["node0"]


def test_nodes_of_a_run_are_in_rank_order_and_none_if_one_is_gone() -> None:
    assert [node.name for node in nodes_of(deployment(), record(nodes=["node1", "node0"]))] == ["node1", "node0"]
    assert nodes_of(deployment(), record(nodes=["node0", "node7"])) == ()
