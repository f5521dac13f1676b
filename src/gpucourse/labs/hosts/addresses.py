"""Find, by trial, the addresses at which machines reach each other.

Neither the machines' names nor the learner's own connections to the machines reveal these addresses.
"""

from __future__ import annotations

import ipaddress
import shlex
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, UnreachableError
from gpucourse.labs.hosts.nodes import EnteredHost
from gpucourse.model.event import NodeEvent
from gpucourse.model.node import Node
from gpucourse.ports import Link
from gpucourse.remote.fleet import Fleet, values
from gpucourse.remote.patience import ANSWER_S

PATIENCE_S = 10
MAX_PORTS_BYTES = len("65535 65535\n")
# The listener ends once every other machine has reported that it tried all addresses; then the shell can run other commands.
_LISTEN = """
import os, random, socket, sys, time
word, end, parent = sys.argv[1].encode(), time.monotonic() + float(sys.argv[2]), os.getppid()
others, first, last = map(int, sys.argv[3:])
doors = []
for port in random.sample(range(first, last + 1), last + 1 - first):
    try:
        doors.append(socket.create_server(("", port), backlog=64))
    except OSError:
        continue
    if len(doors) == 2: break
ports = [door.getsockname()[1] for door in doors] + [0] * (2 - len(doors))
for door in doors[1:]: door.close()
print(*ports, flush=True)
while len(doors) == 2 and others and time.monotonic() < end and os.getppid() == parent:
    try:
        doors[0].settimeout(0.2)
        with doors[0].accept()[0] as line:
            line.settimeout(2)
            line.sendall(word)
            others -= line.recv(3) == b"bye"
    except OSError:
        pass
"""
_CALL = """
import socket, sys
word, port, reached = sys.argv[1].encode(), int(sys.argv[2]), []
def call(address, answer):
    try:
        with socket.create_connection((address, port), 2) as line:
            own, said = line.getsockname()[0], b""
            while len(said) < len(word):
                piece = line.recv(len(word) - len(said))
                if not piece: break
                said += piece
            line.sendall(answer)
            return own if said == word else ""
    except OSError:
        return ""
for address in sys.argv[3:]:
    own = call(address, b"")
    if own:
        print(address, own)
        reached.append(address)
for address in reached[:1]: call(address, b"bye")
"""


def find_private_addresses(context: Context, entered: Sequence[EnteredHost], fleet: Fleet) -> tuple[list[Node], int]:
    """Return the nodes with their private addresses, and a free port of the first node.

    The first node's private address is one at which every other machine reached it, through a port in the range
    `rendezvous_ports`. The returned port is another port in that range, or 0 if there is only one machine. `fleet` connects to
    all machines.

    Raises InfrastructureError with the names of the machines that do not reach the first one.
    """
    head, workers = entered[0], entered[1:]
    candidates = _addresses(head)
    if not workers:
        return [replace(head.node, private_address=candidates[0])], 0
    word, ports = uuid.uuid4().hex, context.settings.ports
    start_s = time.monotonic()
    words = (word, PATIENCE_S * len(candidates) + 10, len(workers), *ports)
    listen = shlex.join([head.node.python, "-u", "-c", _LISTEN, *map(str, words)])
    with fleet.link(head.node).stream(listen, silence_s=ANSWER_S) as pieces:
        port, meet = _read_ports(head, pieces, ports)

        def call(link: Link) -> dict[str, str]:
            result = link.run(shlex.join([link.node.python, "-c", _CALL, word, str(port), *candidates]), timeout_s=ANSWER_S)
            pairs = (line.split() for line in result.stdout.decode("utf-8", "replace").splitlines())
            return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0] in candidates and _is_address(pair[1])}

        answers = values(fleet.do_on_each(call, [host.node for host in workers]))
    shared = next((address for address in candidates if all(address in addresses for addresses in answers)), None)
    if shared is None:
        silent = [host.node.typed for host, addresses in zip(workers, answers, strict=True) if not addresses]
        problem = f"cannot be reached from {', '.join(silent)}" if silent else "has no address at which all others reach it"
        raise InfrastructureError(
            f"{head.node.typed} {problem}; tried: {', '.join(candidates)}",
            hint="the machines must share a network and accept each other's connections at the ports "
            f"{ports[0]} to {ports[1]}: ask the administrator of their firewall",
        )
    nodes = [replace(head.node, private_address=shared)]
    for host, addresses in zip(workers, answers, strict=True):
        nodes.append(replace(host.node, private_address=addresses[shared]))
    for node in nodes:
        seconds = time.monotonic() - start_s
        context.watch(NodeEvent(node=node.typed, step="address", ok=True, seconds=seconds, detail=node.private_address))
    return nodes, meet


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _read_ports(head: EnteredHost, pieces: Iterator[bytes], ports: tuple[int, int]) -> list[int]:
    """Return the port of the listener and another free port, from the listener's first line. The line may arrive in pieces."""
    line = b""
    for piece in pieces:
        line += piece
        if b"\n" in line or len(line) > MAX_PORTS_BYTES:
            break
    text = line.partition(b"\n")[0].decode("ascii", "replace")
    open_ports = [int(port) for port in text[:MAX_PORTS_BYTES].split() if port.isdecimal()]
    if (
        len(open_ports) != 2
        or len(text) > MAX_PORTS_BYTES
        or not all(port == 0 or ports[0] <= port <= ports[1] for port in open_ports)
    ):
        raise UnreachableError(
            f"{head.node.typed}: {head.node.python} printed text at startup, before the port numbers: {text.strip()[:100]!r}",
            hint="remove the code that makes its Python print at startup, such as sitecustomize.py",
        )
    if 0 in open_ports:
        raise InfrastructureError(
            f"every port from {ports[0]} to {ports[1]} is taken on {head.node.typed}",
            hint="set another range: rendezvous_ports in gpucourse.yaml",
        )
    return open_ports


def _addresses(head: EnteredHost) -> list[str]:
    """Return the addresses at which the others try to reach the first machine: those of its interfaces, then the address that
    the learner's SSH uses, then loopback."""
    node_addresses = [address for name, address in head.facts.addresses.items() if not _is_inward(name, address)]
    return list(dict.fromkeys([*node_addresses, head.node.address, "127.0.0.1"]))


def _is_inward(interface: str, address: str) -> bool:
    return address.startswith("127.") or interface.startswith(("docker", "br-", "virbr", "veth", "cni", "flannel"))
