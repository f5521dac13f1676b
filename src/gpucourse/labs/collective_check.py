"""Checks whether nodes can work together: a port that all can reach, then one small collective like those of the exercises."""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError
from gpucourse.launch import environment
from gpucourse.model.deployment import PLAIN_SOCKETS
from gpucourse.model.event import NodeEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.runs.connect import interfaces

if TYPE_CHECKING:
    from gpucourse.ports import Link
    from gpucourse.remote.fleet import Fleet

PORT_S, COLLECTIVE_S = 30, 180
_TRIES = 3
_TAKEN = ("EADDRINUSE", "Address already in use")
_LISTEN = """
import socket, sys
port, others, patience = map(int, sys.argv[1:])
with socket.create_server(("", port), backlog=64) as door:
    door.settimeout(patience)
    for _ in range(others):
        with door.accept()[0] as line:
            line.sendall(b"here")
"""
_CALL = """
import socket, sys, time
address, port, patience = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + patience
while True:
    try:
        with socket.create_connection((address, port), 5) as line:
            assert line.recv(4) == b"here", "somebody else answers"
        break
    except ConnectionRefusedError:
        if time.monotonic() > end:
            raise
        time.sleep(0.1)
"""
_COLLECTIVE = """
import datetime, sys, torch, torch.distributed as group
rank, world, backend, meet = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
patience = datetime.timedelta(seconds=float(sys.argv[5]))
group.init_process_group(backend, init_method=meet, rank=rank, world_size=world, timeout=patience)
ones = torch.full((1024,), float(rank + 1), device="cuda" if backend == "nccl" else "cpu")
group.all_reduce(ones)
wanted = world * (world + 1) / 2
assert bool((ones == wanted).all()), f"the sum is {ones[0].item()} instead of {wanted}"
group.destroy_process_group()
"""


class _PortTaken(InfrastructureError):
    """Another process took the port between the check and the use."""


def hold(
    context: Context,
    fleet: Fleet,
    nodes: Sequence[Node],
    simulated: set[str],
    *,
    meet: int = 0,
    ways: Mapping[str, str] | None = None,
) -> None:
    """Let the nodes reach a port of the first one, and sum up one tensor over all of them.

    Known facts are not determined again: `meet` is a free port of the first one, which the others reach; `ways` are the nodes'
    interfaces.

    If another process takes a port between the check and the use, other ports are tried. Raises InfrastructureError with the
    nodes' messages if they cannot work together.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            port = meet or _find_port(context, fleet, nodes)
            _sum_up(context.watch, fleet, nodes, simulated, port, ways or interfaces(fleet, nodes))
        except _PortTaken:
            meet = 0
            if not tries_left:
                raise
        else:
            return


def _find_port(context: Context, fleet: Fleet, nodes: Sequence[Node]) -> int:
    """Return a free port of the first node, after all others have reached it at another one."""
    from gpucourse.remote import jobs
    from gpucourse.remote.fleet import values

    head, workers = nodes[0], nodes[1:]
    first, last = context.settings.ports
    free = values(fleet.do_on_each(lambda link: jobs.probe(link, (), (first, last)).free_ports, [head]))[0]
    if len(free) < 2:
        raise InfrastructureError(
            f"every port from {first} to {last} is taken on {head.label}",
            hint="set another range: rendezvous_ports in gpucourse.yaml",
        )
    door, meet = random.sample(free, 2)

    def reach(link: Link) -> CommandResult:
        if link.node.name == head.name:
            return _python(link, _LISTEN, str(door), str(len(workers)), str(PORT_S + 5), patience_s=PORT_S + 15)
        return _python(link, _CALL, head.private_address, str(door), str(PORT_S), patience_s=PORT_S + 15)

    _all(
        context.watch,
        fleet,
        nodes,
        "port",
        reach,
        f"the other nodes do not reach {head.label} at {head.private_address}:{door}",
    )
    return meet


def _sum_up(
    watch: Watcher, fleet: Fleet, nodes: Sequence[Node], simulated: set[str], port: int, ways: Mapping[str, str]
) -> None:
    head = nodes[0]
    backend = "gloo" if any(node.name in simulated or not node.gpus for node in nodes) else "nccl"
    ranks = {node.name: rank for rank, node in enumerate(nodes)}

    def sum_up(link: Link) -> CommandResult:
        env = environment.make_network_variables(
            ways[link.node.name], gpus=link.node.gpus if backend == "nccl" else 0, nccl=PLAIN_SOCKETS
        )
        words = (
            str(ranks[link.node.name]),
            str(len(nodes)),
            backend,
            f"tcp://{head.private_address}:{port}",
            str(COLLECTIVE_S - 30),
        )
        return _python(link, _COLLECTIVE, *words, patience_s=COLLECTIVE_S, env=env)

    _all(watch, fleet, nodes, f"all-reduce ({backend})", sum_up, "one small all-reduce over the nodes fails")


def _all(
    watch: Watcher, fleet: Fleet, nodes: Sequence[Node], step: str, task: Callable[[Link], CommandResult], wrong: str
) -> None:
    from gpucourse.remote.fleet import values

    def run(link: Link) -> tuple[str, CommandResult]:
        start_s = time.monotonic()
        result = task(link)
        seconds = time.monotonic() - start_s
        watch(NodeEvent(node=link.node.label, step=step, ok=result.ok, seconds=seconds))
        return link.node.label, result

    failed = [(name, result) for name, result in values(fleet.do_on_each(run, nodes)) if not result.ok]
    if failed:
        messages = "\n".join(f"{name}: {_last(result)}" for name, result in failed)
        kind = _PortTaken if any(word in messages for word in _TAKEN) else InfrastructureError
        raise kind(
            f"{wrong}\n{messages}", hint="the nodes' security group lets all of them reach each other: has it been changed?"
        )


def _python(link: Link, script: str, *words: str, patience_s: float, env: dict[str, str] | None = None) -> CommandResult:
    variables = [f"{name}={value}" for name, value in (env or {}).items()]
    return link.run(shlex.join(["env", *variables, link.node.python, "-c", script, *words]), timeout_s=patience_s)


def _last(result: CommandResult) -> str:
    """Return the last line that gives a reason."""
    lines = [line for line in result.stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[-300:] if lines else f"exit code {result.code}"
