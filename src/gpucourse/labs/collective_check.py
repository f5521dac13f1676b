"""Check that nodes can work together, with one small collective operation like those of the exercises."""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError
from gpucourse.launch import environment
from gpucourse.model.deployment import PLAIN_SOCKETS
from gpucourse.model.event import NodeEvent
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.runs.connect import interfaces

if TYPE_CHECKING:
    from gpucourse.ports import Link
    from gpucourse.remote.fleet import Fleet

COLLECTIVE_S = 180
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


def run(
    context: Context,
    fleet: Fleet,
    nodes: Sequence[Node],
    simulated: set[str],
    *,
    port: int = 0,
    interface_by_node: Mapping[str, str] | None = None,
) -> None:
    """Sum one tensor over all the nodes with torch.

    `port`: a free port of the first node, if already known.
    `interface_by_node`: the network interface of each node, if already known.

    Raises InfrastructureError with the nodes' messages if they cannot work together.
    """
    from gpucourse.remote.fleet import values

    head, port = nodes[0], port or _find_port(context, fleet, nodes[0])
    interface_by_node = interface_by_node or interfaces(fleet, nodes)
    backend = "gloo" if any(node.name in simulated or not node.gpus for node in nodes) else "nccl"
    ranks = {node.name: rank for rank, node in enumerate(nodes)}

    def sum_up(link: Link) -> tuple[str, CommandResult]:
        start_s = time.monotonic()
        env = environment.make_network_variables(
            interface_by_node[link.node.name], gpus=link.node.gpus if backend == "nccl" else 0, nccl=PLAIN_SOCKETS
        )
        words = (
            str(ranks[link.node.name]),
            str(len(nodes)),
            backend,
            f"tcp://{head.private_address}:{port}",
            str(COLLECTIVE_S - 30),
        )
        variables = [f"{name}={value}" for name, value in env.items()]
        command = shlex.join(["env", *variables, link.node.python, "-c", _COLLECTIVE, *words])
        result = link.run(command, timeout_s=COLLECTIVE_S)
        seconds = time.monotonic() - start_s
        context.watch(NodeEvent(node=link.node.label, step=f"all-reduce ({backend})", ok=result.ok, seconds=seconds))
        return link.node.label, result

    failures = [(name, result) for name, result in values(fleet.do_on_each(sum_up, nodes)) if not result.ok]
    if failures:
        messages = "\n".join(f"{name}: {_find_last_line(result)}" for name, result in failures)
        raise InfrastructureError(
            f"one small all-reduce over the nodes, which meet at {head.private_address}:{port}, failed\n{messages}",
            hint="check that the nodes' security group still lets all of them reach each other",
        )


def _find_port(context: Context, fleet: Fleet, head: Node) -> int:
    """Return a free port of the first node. Raises InfrastructureError if it has none."""
    from gpucourse.remote import jobs
    from gpucourse.remote.fleet import values

    first, last = context.settings.ports
    free = values(fleet.do_on_each(lambda link: jobs.probe(link, (), (first, last)).free_ports, [head]))[0]
    if not free:
        raise InfrastructureError(
            f"every port from {first} to {last} is taken on {head.label}",
            hint="set another range: rendezvous_ports in gpucourse.yaml",
        )
    return random.choice(free)


def _find_last_line(result: CommandResult) -> str:
    """Return the last line of the error output, or the exit code if there is no output."""
    lines = [line for line in result.stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[-300:] if lines else f"exit code {result.code}"
