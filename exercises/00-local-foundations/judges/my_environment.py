"""Judge my_environment.py of 0.3, for every process in several groups of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpucourse.judge import Case, Part, Way

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
WAYS = {
    "nodes-alike": Way(
        "RANK was computed as if every node had as many processes as this one. Then two processes get the same rank, or a "
        "rank is missing and all wait for it. Add up the real numbers of processes on earlier nodes",
        ("sum(processes[:node])", "node * processes[node]"),
    ),
    "like-node-0": Way(
        "RANK was computed as if every node had as many processes as node 0. Then two processes get the same rank, or a "
        "rank is missing and all wait for it. Add up the real numbers of processes on earlier nodes",
        ("sum(processes[:node])", "node * processes[0]"),
    ),
    "like-the-largest": Way(
        "RANK was computed as if every node had as many processes as the largest. Then some ranks are missing, and all wait "
        "for them. Add up the real numbers of processes on earlier nodes",
        ("sum(processes[:node])", "node * max(processes)"),
    ),
    "node-by-node": Way(
        "ranks were dealt out to the nodes in turn: a launcher fills node 0 first, so that consecutive ranks share a "
        "machine and its fast links",
        ("preceding + local_rank", "local_rank * len(processes) + node"),
    ),
    "own-node-only": Way(
        "RANK starts at 0 on every node: there are {nodes} processes with rank 0, and each of them waits for the others as "
        "rank 0. The processes of earlier nodes come first",
        ("preceding + local_rank", "local_rank"),
    ),
    "local-is-global": Way(
        "LOCAL_RANK continues from node to node: process {rank} would look for GPU {rank} on a node that has only {count}",
        ('"LOCAL_RANK": local_rank', '"LOCAL_RANK": preceding + local_rank'),
    ),
    "includes-own-node": Way(
        "RANK adds the processes of this node to those of earlier nodes: rank 0 is missing, and all wait for it",
        ("processes[:node]", "processes[: node + 1]"),
    ),
    "world-of-nodes": Way(
        "WORLD_SIZE is the number of nodes: it has to be the number of processes on all nodes together",
        ('"WORLD_SIZE": sum(processes)', '"WORLD_SIZE": len(processes)'),
    ),
    "world-of-one-node": Way(
        "WORLD_SIZE is the number of processes on one node: it has to be the number on all nodes together",
        ('"WORLD_SIZE": sum(processes)', '"WORLD_SIZE": processes[node]'),
    ),
    "master-is-here": Way(
        "MASTER_ADDR is the process's own node, so each node would wait at its own address. All must meet where rank 0 listens",
        ('"MASTER_ADDR": master', '"MASTER_ADDR": hosts[node]'),
    ),
    "node-without-processes": Way(
        "MASTER_ADDR is node 0, which has no process here, so nothing listens there. Rank 0 listens on its own node: which "
        "node has rank 0?",
        ('"MASTER_ADDR": master', '"MASTER_ADDR": hosts[0]'),
    ),
    "largest-node": Way(
        "MASTER_ADDR is the node with the most processes. All must meet where rank 0 listens, on its own node",
        ('"MASTER_ADDR": master', '"MASTER_ADDR": hosts[processes.index(max(processes))]'),
    ),
    "own-port": Way(
        "MASTER_PORT differs from process to process. It is the port where rank 0 listens, so it must be the same for all",
        ('"MASTER_PORT": port', '"MASTER_PORT": port + preceding + local_rank'),
    ),
    "from-one": Way(
        "you counted from 1: ranks, local ranks and nodes are counted from 0, and a world of {world} has no rank {world}",
        ('"RANK": preceding + local_rank', '"RANK": preceding + local_rank + 1'),
    ),
    "not-text": Way(
        "{name} is {kind}, but environment variables must be text: otherwise, the process does not even start",
        ("name: str(value)", "name: value"),
    ),
    "missing": Way(
        "{name} is missing: init_process_group would report that, or wait for ever",
        ('        "LOCAL_WORLD_SIZE": processes[node],\n', ""),
    ),
}
GROUPS = (
    ([1], 20001),
    ([2, 2], 29500),
    ([3, 4, 2], 23456),
    ([1, 8, 1, 2, 5], 30000),
    ([2, 0, 3], 24680),
    ([0, 3, 1], 25000),
)  # processes on each node, port


def judge(part: Part) -> None:
    """Judge the variables of every process in each group of nodes."""
    describe = part.function("describe_process")
    cases: list[Case] = []
    for processes, port in GROUPS:
        hosts = [f"10.0.{len(processes)}.{node + 7}" for node in range(len(processes))]
        for node, local_rank in [(node, index) for node, count in enumerate(processes) for index in range(count)]:
            name = f"node {node}, local rank {local_rank}, with {processes} processes on the nodes"
            answer = part.call(describe, node, local_rank, hosts, list(processes), port, case=name)
            _require_text(part, answer, name)
            answer = {key: answer[key] for key in NAMES}  # further variables do no harm
            right, ways = _describe(node, local_rank, hosts, processes, port)
            world, rank = sum(processes), int(right["RANK"])
            values = {"nodes": len(processes), "rank": rank, "count": processes[node], "world": world}
            knobs = {"nodes": len(processes), "node": node, "local rank": local_rank, "processes": str(processes)}
            cases.append(Case(name, answer, right, ways, values, knobs))
    _compare_each(part, cases)
    part.note(f"right for all {len(cases)} processes of {len(GROUPS)} groups of nodes")


def _require_text(part: Part, answer: Any, case: str) -> None:
    if not isinstance(answer, Mapping):
        part.compare([Case(case, answer, {"RANK": "..."})])
        return
    for name in NAMES:
        if name not in answer:
            raise part.wrong("missing", case, name=name)
        if not isinstance(answer[name], str):
            raise part.wrong("not-text", case, name=name, kind=f"{answer[name]!r}, a {type(answer[name]).__name__}")


def _compare_each(part: Part, cases: list[Case]) -> None:
    """Compare each variable separately, so that a mistake in one variable is named even if others are wrong too."""
    for name in NAMES:
        part.compare([
            Case(
                f"{name} of {case.name}", case.given[name], case.right[name],
                {way: values[name] for way, values in case.ways.items() if name in values}, case.values, case.knobs,
            )
            for case in cases
        ])  # fmt: skip


def _describe(
    node: int, local_rank: int, hosts: list[str], processes: list[int], port: int
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the right variables. For each mistake, also return the variables that it changes, with their wrong values."""
    rank = sum(processes[:node]) + local_rank
    right = {
        "RANK": rank, "WORLD_SIZE": sum(processes), "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": processes[node],
        "NODE_RANK": node, "MASTER_ADDR": hosts[next(n for n, count in enumerate(processes) if count)], "MASTER_PORT": port,
    }  # fmt: skip
    ways: dict[str, dict[str, object]] = {
        "nodes-alike": {"RANK": node * processes[node] + local_rank},
        "like-node-0": {"RANK": node * processes[0] + local_rank},
        "like-the-largest": {"RANK": node * max(processes) + local_rank},
        "node-by-node": {"RANK": local_rank * len(processes) + node},
        "own-node-only": {"RANK": local_rank},
        "local-is-global": {"LOCAL_RANK": rank},
        "includes-own-node": {"RANK": rank + processes[node]},
        "world-of-nodes": {"WORLD_SIZE": len(processes)},
        "world-of-one-node": {"WORLD_SIZE": processes[node]},
        "master-is-here": {"MASTER_ADDR": hosts[node]},
        "node-without-processes": {"MASTER_ADDR": hosts[0]},
        "largest-node": {"MASTER_ADDR": hosts[processes.index(max(processes))]},
        "own-port": {"MASTER_PORT": port + rank},
        "from-one": {"RANK": rank + 1, "LOCAL_RANK": local_rank + 1, "NODE_RANK": node + 1},
    }
    return _format_values(right), {name: _format_values(values) for name, values in ways.items()}


def _format_values(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
