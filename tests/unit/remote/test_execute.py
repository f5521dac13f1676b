"""Requests to all nodes of a run: probe, states, cancel."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.model.event import Event, Note
from gpucourse.remote import execute
from gpucourse.remote.agent.pack import MAX_FILES
from gpucourse.remote.fleet import Fleet
from tests.unit.labs.aws.fakes import fleet_of, make_completed, node
from tests.unit.remote.agent_link import make_nodes
from tests.unit.remote.answering import AnsweringNodes


@pytest.mark.parametrize(("nodes", "files"), [(0, MAX_FILES), (2, MAX_FILES), (64, 2000), (1_000_000, 1)])
def test_max_files_of_shares_the_limit_of_a_run(nodes: int, files: int) -> None:
    assert execute.max_files_of(nodes) == files


def test_states_names_the_nodes_that_do_not_answer() -> None:
    answers: dict[str, Any] = {"states": {"r1": {"state": "running", "exit": None}}}
    nodes = AnsweringNodes(node0=answers, node1=UnreachableError("no route", hint=""))
    with Fleet(nodes, make_nodes(2)) as fleet:
        with pytest.raises(UnreachableError, match=r"1 of 2 nodes failed: .*no route"):
            execute.states(fleet, "r1")
        nodes.answers["node1"] = answers
        assert {name: state.state for name, state in execute.states(fleet, "r1").items()} == {
            "node0": "running", "node1": "running"
        }  # fmt: skip


def test_probe_tells_what_each_node_lacks_and_a_free_port() -> None:
    nodes = (node("node0", role="head"), node("node1"))
    fleet = fleet_of(lambda *_: make_completed(), *nodes)
    findings = execute.probe(fleet, modules=("torch", "no_such_package"), programs=("sh", "srun"), ports=(1000, 2000))
    assert findings["node0"].free_ports == [1031, 1032]
    assert [item.missing for item in findings.values()] == [["no_such_package"]] * 2
    assert findings["node1"].missing_programs == ["srun"]


def test_make_thread_safe_tells_one_event_at_a_time() -> None:
    depth, peak = [0], [0]

    def watch(_event: Event) -> None:
        depth[0] += 1
        peak[0] = max(peak[0], depth[0])
        time.sleep(0.01)
        depth[0] -= 1

    tell = execute.make_thread_safe(watch)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tell, [Note(text="n")] * 8))
    assert peak == [1]
