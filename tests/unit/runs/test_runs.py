"""`runs` asks each node once how all runs under way stand, however many they are; any other run is asked about by itself."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import CourseFolders
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.node import Inventory, Node
from gpucourse.model.record import RunRecord
from gpucourse.ports import CommandResult, Link
from gpucourse.runs.runs import every_run
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.locate import open_workspace
from tests.unit.remote.test_keys import node

NODES = tuple(replace(node(0), name=f"node{number}") for number in range(2))
RUNNING: dict[str, object] = {"state": "running", "exit": None, "ranks": {}}


class _Nodes:
    """Nodes where every run is under way, but those that are `lost` to one of them; and the verbs that they were asked."""

    def __init__(self, context: Context) -> None:
        self.context, self.asked, self.lost = context, list[tuple[str, ...]](), set[str]()
        self.node, self.alive = NODES[0], True

    def connect(self, node: Node, *, timeout_s: float = 0.0) -> Link:
        nodes = _Nodes(self.context)
        nodes.asked, nodes.lost, nodes.node = self.asked, self.lost, node
        return nodes  # type: ignore[return-value]  # it carries out no stream

    def run(self, command: str, *, stdin: object = b"", timeout_s: float = 0.0) -> CommandResult:
        words = shlex.split(command.rpartition("agent-")[2])[1:]
        self.asked.append((self.node.name, *words))
        states = {run: {**RUNNING, "state": "absent"} if run in self.lost else RUNNING for run in words[1:]}
        told = {"runs": states} if words[0] == "states" else states[words[1]]
        return CommandResult(code=0, stdout=json.dumps(told).encode(), stderr=b"")

    def close(self) -> None:
        self.alive = False


@pytest.fixture
def nodes(tmp_path: Path) -> _Nodes:
    folders = CourseFolders(tmp_path, tmp_path, tmp_path)
    context = Context(workspace=open_workspace(tmp_path / "w"), folders=folders, environ={})
    lab = LocalDeployment(
        stack="03-local", uid="u", module="3", template="simulated", phase="ready", created="2026-01-01T00:00:00+00:00",
        updated="", nodes_wanted=2, inventory=Inventory(stack="03-local", nodes=NODES),
    )  # fmt: skip
    deployments.save(context.paths, lab)
    nodes = _Nodes(context)
    context.make_transport = lambda _key: nodes
    return nodes


def _start(context: Context, count: int) -> list[str]:
    ids = [f"20260101-0000{number:02}-{word}" for number, word in enumerate(runs.WORDS[:count])]
    for run_id in ids:
        record = RunRecord(
            id=run_id, exercise="3.2", module="3", stack="03-local", mode="local", launcher="torchrun", state="running",
            created="2026-01-01T00:00:00+00:00", nodes=[node.name for node in NODES], world_size=2,
        )  # fmt: skip
        runs.files_of(context.paths, record).folder.mkdir(parents=True)
        runs.save(context.paths, record)
    return ids


@pytest.mark.parametrize("count", [1, 20])
def test_every_run_asks_each_node_once_about_all_runs(nodes: _Nodes, count: int) -> None:
    ids = _start(nodes.context, count)
    listed, errors = every_run(nodes.context)
    assert not errors
    assert [(item.record.id, item.record.state, item.detail) for item in listed] == [(run_id, "running", "") for run_id in ids]
    assert sorted(asked[0] for asked in nodes.asked) == ["node0", "node1"]
    assert all(list(asked[2:]) == ids for asked in nodes.asked)


def test_every_run_asks_again_about_a_run_that_is_not_under_way(nodes: _Nodes) -> None:
    ids = _start(nodes.context, 8)
    nodes.lost.add(ids[3])
    listed, _ = every_run(nodes.context)
    assert [item.record.state for item in listed] == ["lost" if run_id == ids[3] else "running" for run_id in ids]
    assert sorted(asked for asked in nodes.asked if asked[1] == "state") == [
        (name, "state", ids[3]) for name in ("node0", "node1")
    ]
