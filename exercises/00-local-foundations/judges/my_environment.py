"""Judge my_environment.py of 0.3, for every process in several groups of nodes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
WAYS = {
    "left-over": Way(
        "node {node} has {free} free GPUs, and groups of {size} use {count} of them: process {local} would belong to a group "
        "on two nodes, or to one that is too small, so it must not be started (return None)",
        ("count - count % group_size", "count"),
    ),
    "not-started": Way(
        "process {local} of node {node} is not started, but it belongs to a whole group of {size}: node {node} has {free} free "
        "GPUs. The job would be smaller than it could be",
        ("local_rank >= started[node]", "local_rank >= started[node] or started[node] < free_gpus[node]"),
    ),
    "rank-of-free-gpus": Way(
        "RANK counts all free GPUs of earlier nodes, including those for which no process is started: a rank is missing, and "
        "all wait for it",
        ("sum(started[:node])", "sum(free_gpus[:node])"),
    ),
    "world-of-free-gpus": Way(
        "WORLD_SIZE is the number of free GPUs: those without a process do not count, and all would wait for them",
        ('"WORLD_SIZE": sum(started)', '"WORLD_SIZE": sum(free_gpus)'),
    ),
    "world-of-split-groups": Way(
        "WORLD_SIZE counts groups that the nodes could only form together, such as one of 4 from two nodes with 2 free GPUs. "
        "A group must be on one node",
        ('"WORLD_SIZE": sum(started)', '"WORLD_SIZE": sum(free_gpus) // group_size * group_size'),
    ),
    "local-world-of-free-gpus": Way(
        "LOCAL_WORLD_SIZE is the number of free GPUs on the node ({free}). It has to be the number of processes that are "
        "started there",
        ('"LOCAL_WORLD_SIZE": started[node]', '"LOCAL_WORLD_SIZE": free_gpus[node]'),
    ),
    "node-without-group": Way(
        "MASTER_ADDR is the first node with a free GPU, which has too few for a group here, so nothing listens there. Rank 0 "
        "listens on its own node",
        ("zip(hosts, started, strict=True)", "zip(hosts, free_gpus, strict=True)"),
    ),
    "nodes-alike": Way(
        "RANK was computed as if every node had as many processes as this one. Then two processes get the same rank, or a "
        "rank is missing and all wait for it. Add up the real numbers of processes on earlier nodes",
        ("sum(started[:node])", "node * started[node]"),
    ),
    "like-node-0": Way(
        "RANK was computed as if every node had as many processes as node 0. Then two processes get the same rank, or a "
        "rank is missing and all wait for it. Add up the real numbers of processes on earlier nodes",
        ("sum(started[:node])", "node * started[0]"),
    ),
    "like-the-largest": Way(
        "RANK was computed as if every node had as many processes as the largest. Then some ranks are missing, and all wait "
        "for them. Add up the real numbers of processes on earlier nodes",
        ("sum(started[:node])", "node * max(started)"),
    ),
    "node-by-node": Way(
        "ranks were dealt out to the nodes in turn: a launcher fills node 0 first, so that consecutive ranks share a "
        "machine and its fast links",
        ("preceding + local_rank", "local_rank * len(started) + node"),
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
        ("started[:node]", "started[: node + 1]"),
    ),
    "world-of-nodes": Way(
        "WORLD_SIZE is the number of nodes: it has to be the number of processes on all nodes together",
        ('"WORLD_SIZE": sum(started)', '"WORLD_SIZE": len(started)'),
    ),
    "world-of-one-node": Way(
        "WORLD_SIZE is the number of processes on one node: it has to be the number on all nodes together",
        ('"WORLD_SIZE": sum(started)', '"WORLD_SIZE": started[node]'),
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
        ('"MASTER_ADDR": master', '"MASTER_ADDR": hosts[started.index(max(started))]'),
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
        ('        "LOCAL_WORLD_SIZE": started[node],\n', ""),
    ),
}
PLACES = (
    ([1], 1, 20001),
    ([2, 2], 1, 29500),
    ([3, 4, 2], 1, 23456),
    ([2, 0, 3], 1, 24680),
    ([4, 3, 2], 2, 28000),
    ([0, 3, 1, 6], 2, 25000),
    ([1, 8, 1, 3, 5], 2, 30000),
    ([2, 7, 3, 8, 6], 4, 26000),
)  # free GPUs of each node, group size, port
OLDER = (
    "describe_process cannot be called with six arguments, which may be because your file is older than this exercise: after "
    "port, it now also gets group_size. The ranks form groups of this size, each on one node; return None for a process that "
    "belongs to no group"
)


def judge(part: Part) -> None:
    """Judge the variables of every process on several groups of nodes."""
    describe = part.function("describe_process")
    _require_group_size(describe)
    cases: list[Case] = []
    for free_gpus, size, port in PLACES:
        hosts = [f"10.0.{len(free_gpus)}.{node + 7}" for node in range(len(free_gpus))]
        started = [count // size * size for count in free_gpus]
        for node, local_rank in [(node, index) for node, count in enumerate(free_gpus) for index in range(count)]:
            name = f"node {node}, local rank {local_rank}, with {free_gpus} free GPUs on the nodes, in groups of {size}"
            answer = part.call(describe, node, local_rank, hosts, list(free_gpus), port, size, case=name)
            values = {
                "nodes": len(free_gpus), "node": node, "local": local_rank, "free": free_gpus[node], "size": size,
                "count": started[node], "world": sum(started), "rank": sum(started[:node]) + local_rank,
            }  # fmt: skip
            belongs = local_rank < started[node]
            if not answer and answer is not None:
                _require_text(part, answer, name)
            if belongs != (answer is not None):
                raise part.wrong("not-started" if belongs else "left-over", name, **values)
            if belongs:
                _require_text(part, answer, name)
                answer = {key: answer[key] for key in NAMES}  # further variables do no harm
                right, ways = _describe(node, local_rank, hosts, free_gpus, started, size, port)
                knobs = {"nodes": len(free_gpus), "group size": size, "node": node, "local rank": local_rank,
                         "free GPUs": str(free_gpus)}  # fmt: skip
                cases.append(Case(name, answer, right, ways, values, knobs))
    _compare_each(part, cases)
    part.note(f"right for all {len(cases)} started processes of {len(PLACES)} jobs")


def _require_group_size(describe: Callable[..., Any]) -> None:
    """Check that the function accepts six arguments. Raises Verdict."""
    try:
        signature = inspect.signature(describe)
    except (TypeError, ValueError):  # of a callable that does not say what it accepts
        return
    try:
        signature.bind(*range(6))
    except TypeError:
        raise Verdict("failed", "older", OLDER) from None


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
    node: int, local_rank: int, hosts: list[str], free_gpus: list[int], started: list[int], size: int, port: int
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the right variables. For each mistake, also return the variables that it changes, with their wrong values."""
    rank = sum(started[:node]) + local_rank
    right = {
        "RANK": rank, "WORLD_SIZE": sum(started), "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": started[node],
        "NODE_RANK": node, "MASTER_ADDR": hosts[next(n for n, count in enumerate(started) if count)], "MASTER_PORT": port,
    }  # fmt: skip
    ways: dict[str, dict[str, object]] = {
        "rank-of-free-gpus": {"RANK": sum(free_gpus[:node]) + local_rank},
        "world-of-free-gpus": {"WORLD_SIZE": sum(free_gpus)},
        "world-of-split-groups": {"WORLD_SIZE": sum(free_gpus) // size * size},
        "local-world-of-free-gpus": {"LOCAL_WORLD_SIZE": free_gpus[node]},
        "node-without-group": {"MASTER_ADDR": hosts[next(n for n, count in enumerate(free_gpus) if count)]},
        "nodes-alike": {"RANK": node * started[node] + local_rank},
        "like-node-0": {"RANK": node * started[0] + local_rank},
        "like-the-largest": {"RANK": node * max(started) + local_rank},
        "node-by-node": {"RANK": local_rank * len(started) + node},
        "own-node-only": {"RANK": local_rank},
        "local-is-global": {"LOCAL_RANK": rank},
        "includes-own-node": {"RANK": rank + started[node]},
        "world-of-nodes": {"WORLD_SIZE": len(started)},
        "world-of-one-node": {"WORLD_SIZE": started[node]},
        "master-is-here": {"MASTER_ADDR": hosts[node]},
        "node-without-processes": {"MASTER_ADDR": hosts[0]},
        "largest-node": {"MASTER_ADDR": hosts[started.index(max(started))]},
        "own-port": {"MASTER_PORT": port + rank},
        "from-one": {"RANK": rank + 1, "LOCAL_RANK": local_rank + 1, "NODE_RANK": node + 1},
    }
    return _format_values(right), {name: _format_values(values) for name, values in ways.items()}


def _format_values(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
