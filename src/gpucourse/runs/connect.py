"""Connect to the nodes of runs, once for each command, and find the network interfaces between the nodes."""

from __future__ import annotations

import re
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from gpucourse.context import Context
from gpucourse.errors import MissingError, UnreachableError
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import NodeEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.model.record import RunRecord
from gpucourse.outside.names import printable
from gpucourse.ports import Transport
from gpucourse.workspace import deployments

if TYPE_CHECKING:
    from gpucourse.ports import Link
    from gpucourse.remote.fleet import Fleet


RUNS_AT_ONCE = 6
"""The number of runs of one lab that are queried, ended or collected at the same time. Each needs one of the eight channels of
the connection. Two channels are kept free for queries about ranks.
"""

_DEVICE = re.compile(rb"\bdev (\S+)")
_NO_PROGRAM = 127  # the exit code of a shell for an unknown program


def reach(watch: Watcher, fleet: Fleet) -> None:
    """Connect to all nodes in parallel. Raises UnreachableError with the name of every node that does not answer."""
    from gpucourse.remote.fleet import values

    start_s = time.monotonic()
    outcomes = fleet.connect()
    seconds = time.monotonic() - start_s
    for outcome in outcomes:
        detail = outcome.error.what if outcome.error else ""
        watch(NodeEvent(node=outcome.node.name, step="ssh", ok=outcome.ok, seconds=seconds, detail=detail))
    values(outcomes)


def make_fleet(
    transport: Transport, deployment: Deployment, nodes: tuple[Node, ...], *, scheduled: bool, timeout_s: float | None = None
) -> Fleet:
    """Return a fleet of the nodes, not connected yet. For a run under Slurm, commands start in the folder that all machines
    share.

    `timeout_s`: the time limit of a connection, if it is not the usual one.
    """
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.patience import CONNECT_S

    return Fleet(transport, nodes, timeout_s=timeout_s or CONNECT_S, shared=deployment.shared if scheduled else "")


def nodes_of(deployment: Deployment, record: RunRecord) -> tuple[Node, ...]:
    """Return the nodes of a run in rank order, or an empty tuple if the stack no longer has all of them."""
    by_name = {node.name: node for node in deployment.nodes}
    return tuple(by_name[name] for name in record.nodes) if by_name.keys() >= set(record.nodes) else ()


@dataclass
class _Lab:
    """The connections to the nodes of one lab. `errors`: why some nodes could not be reached."""

    fleet: Fleet
    lock: threading.Lock = field(default_factory=threading.Lock)
    errors: dict[tuple[Node, ...], UnreachableError] = field(default_factory=dict)


class Connections:
    """The connections of one command: at most one to each node, which stays open until the block ends. Threads may share this
    object.

    If a node did not answer, later requests for it fail without waiting again.
    """

    def __init__(self, context: Context, *, timeout_s: float | None = None) -> None:
        """Open no connection yet. `timeout_s` is the time limit of each connection; None stands for the usual limit."""
        self._context, self._timeout_s = context, timeout_s
        self._labs: dict[tuple[str, bool], _Lab] = {}
        self._lock = threading.Lock()

    def reach_run(self, record: RunRecord) -> Fleet:
        """Return the nodes of a run, connected.

        Raises MissingError if the run's stack is gone, and UnreachableError for nodes that do not answer.
        """
        deployment = deployments.load(self._context.paths, record.stack)
        nodes = nodes_of(deployment, record) if deployment else ()
        if deployment is None or not nodes:
            raise MissingError(f"the nodes of run {record.id} are gone", hint=f"gpucourse deploy {record.module}")
        return self.reach(deployment, nodes, scheduled=record.slurm is not None)

    def reach(self, deployment: Deployment, nodes: tuple[Node, ...], *, scheduled: bool) -> Fleet:
        """Return these nodes of a lab, all connected. Raises UnreachableError for nodes that do not answer."""
        with self._lock:
            if (key := (deployment.stack, scheduled)) not in self._labs:
                fleet = make_fleet(
                    self._context.transport,
                    deployment,
                    deployment.nodes or nodes,
                    scheduled=scheduled,
                    timeout_s=self._timeout_s,
                )
                self._labs[key] = _Lab(fleet)
        lab = self._labs[key]
        fleet = lab.fleet.part(nodes)
        with lab.lock:
            if nodes in lab.errors:
                raise lab.errors[nodes]
            if not fleet.is_connected:
                try:
                    reach(self._context.watch, fleet)
                except UnreachableError as error:
                    lab.errors[nodes] = error
                    raise
        return fleet

    def close(self) -> None:
        """Close all connections."""
        for lab in self._labs.values():
            lab.fleet.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def interfaces(fleet: Fleet, nodes: Sequence[Node]) -> dict[str, str]:
    """Return, for each node, the network interface that leads to the first of `nodes`; for the first node itself, the
    interface that leads to the second.

    Simulated nodes that are not separate machines use the loopback interface. Raises MissingError if a node has no route.
    """
    from gpucourse.remote.fleet import values

    if all(node.private_address == "127.0.0.1" for node in nodes):
        return {node.name: "lo0" if sys.platform == "darwin" else "lo" for node in nodes}
    first, second = nodes[0], nodes[1] if len(nodes) > 1 else nodes[0]

    def ask(link: Link) -> str:
        return find_interface(link, second if link.node.name == first.name else first)

    return dict(zip((node.name for node in nodes), values(fleet.do_on_each(ask, nodes)), strict=True))


def find_interface(link: Link, peer: Node) -> str:
    """Return the network interface that leads from a node to another node. Raises MissingError if there is no route."""
    output = link.run(f"ip -o route get {shlex.quote(peer.private_address)}", timeout_s=20.0)
    if output.code == _NO_PROGRAM:
        raise MissingError(
            f"the program `ip` is not installed on {link.node.label}",
            hint="install it on the node: sudo apt-get install iproute2",
        )
    match = _DEVICE.search(output.stdout)
    if not output.ok or match is None:
        message = (
            printable((output.stderr or output.stdout).decode(errors="replace").strip()[-200:]) or "ip route printed nothing"
        )
        raise MissingError(
            f"{link.node.label} has no route to {peer.label} at {peer.private_address}: {message}",
            hint="the nodes must share a network",
        )
    from gpucourse.remote import answers

    try:
        return answers.interface(match[1].decode(errors="replace"))
    except ValueError as error:
        raise answers.make_untrusted_error(link.node.label, "the interface that it names", error) from error
