"""A Slurm cluster as the agent describes it."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.errors import NodeUntrusted
from gpucourse.remote import slurm_client
from tests.unit.remote.agent_link import make_nodes
from tests.unit.remote.answering import AnsweringLink


def make_link(verb: str, answer: dict[str, Any]) -> AnsweringLink:
    return AnsweringLink(make_nodes(1)[0], {verb: answer})


def make_cluster(*rows: dict[str, Any], **options: Any) -> dict[str, Any]:
    usual = {"name": "gpu", "default": True, "open": True, "nodes": [make_node()]}
    partitions = [{**usual, **row} for row in rows]
    return {"partitions": partitions, **options}


def make_node(**options: Any) -> dict[str, Any]:
    return {"name": "a", "state": "idle", "gpus": 1, "cores": 4, "reason": "", **options}


def test_cluster_finds_one_partition_or_several() -> None:
    rows: list[dict[str, Any]] = [
        {"nodes": [make_node(), make_node(name="b", state="down*")]},
        {"name": "cpu", "default": False, "open": False, "nodes": [make_node(name="b")]},
    ]
    cluster = slurm_client.cluster(make_link("cluster", make_cluster(*rows)))
    assert cluster.default is not None
    assert [(node.name, node.usable) for node in cluster.default.nodes] == [("a", True), ("b", False)]
    union = cluster.partition("gpu,cpu")
    assert union is not None
    assert ([node.name for node in union.nodes], union.open) == (["a", "b"], True)
    assert cluster.partition("gpu,none") is None


@pytest.mark.parametrize(
    "answer",
    [
        make_cluster({"name": "-rf"}), make_cluster({"nodes": [make_node(name="../x")]}),
        make_cluster({"nodes": [make_node(gpus=-1)]}),
        make_cluster(batch_partition="gpu,;"),
    ],
)  # fmt: skip
def test_cluster_refuses_names_that_slurm_has_not(answer: dict[str, Any]) -> None:
    with pytest.raises(NodeUntrusted, match="its answer to cluster cannot be used"):
        slurm_client.cluster(make_link("cluster", answer))


def test_session_accepts_only_folders_of_known_variables() -> None:
    answer = {"rows": [], "gpus": 2, "work": "/w", "outputs": "/o", "places": {"TMPDIR": "/t"}}
    state = slurm_client.session(make_link("session", answer), "r1")
    assert (state.row, state.gpus, state.places) == (None, 2, {"TMPDIR": "/t"})
    with pytest.raises(NodeUntrusted, match="a variable that is not in the request"):
        slurm_client.session(make_link("session", {**answer, "places": {"LD_PRELOAD": "/t"}}), "r1")
