"""By which address the machines see each other: tried out, since neither names nor the learner's own way to them tell."""

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
LONGEST_PORT = 5  # digits
_LISTEN = """
import os, socket, sys, time
word, end, parent = sys.argv[1].encode(), time.monotonic() + float(sys.argv[2]), os.getppid()
door = socket.create_server(("", 0), backlog=64)
door.settimeout(0.2)
print(door.getsockname()[1], flush=True)
while time.monotonic() < end and os.getppid() == parent:
    try:
        with door.accept()[0] as line: line.sendall(word)
    except OSError:
        pass
"""
_CALL = """
import socket, sys
word, port = sys.argv[1].encode(), int(sys.argv[2])
for address in sys.argv[3:]:
    try:
        with socket.create_connection((address, port), 2) as line:
            own, said = line.getsockname()[0], b""
            while len(said) < len(word):
                piece = line.recv(len(word) - len(said))
                if not piece: break
                said += piece
            if said == word: print(address, own)
    except OSError:
        pass
"""


def find_private_addresses(context: Context, entered: Sequence[EnteredHost], fleet: Fleet) -> list[Node]:
    """The nodes with their private addresses: the first one's is an address that every other machine reached it by. `fleet`
    leads to all of them.

    Raises InfrastructureError that names who does not reach it.
    """
    head, others = entered[0], entered[1:]
    tried = _addresses(head)
    if not others:
        return [replace(head.node, private_address=tried[0])]
    word = uuid.uuid4().hex
    began = time.monotonic()
    listen = shlex.join([head.node.python, "-u", "-c", _LISTEN, word, str(PATIENCE_S * len(tried) + 10)])
    with fleet.link(head.node).stream(listen, silence_s=ANSWER_S) as pieces:
        port = _port(head, pieces)

        def call(link: Link) -> dict[str, str]:
            done = link.run(shlex.join([link.node.python, "-c", _CALL, word, str(port), *tried]), timeout_s=ANSWER_S)
            pairs = (line.split() for line in done.stdout.decode("utf-8", "replace").splitlines())
            return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0] in tried and _is_address(pair[1])}

        reached = values(fleet.do_on_each(call, [host.node for host in others]))
    shared = next((address for address in tried if all(address in addresses for addresses in reached)), None)
    if shared is None:
        silent = [host.node.typed for host, addresses in zip(others, reached, strict=True) if not addresses]
        who = ", ".join(silent) if silent else "not all the others by the same one"
        raise InfrastructureError(
            f"{head.node.typed} cannot be reached from {who}; tried: {', '.join(tried)}",
            hint="the machines must share a network and accept each other's connections: ask whoever manages their firewall",
        )
    nodes = [replace(head.node, private_address=shared)]
    for host, addresses in zip(others, reached, strict=True):
        nodes.append(replace(host.node, private_address=addresses[shared]))
    for node in nodes:
        seconds = time.monotonic() - began
        context.watch(NodeEvent(node=node.typed, step="address", ok=True, seconds=seconds, detail=node.private_address))
    return nodes


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _port(head: EnteredHost, pieces: Iterator[bytes]) -> int:
    """The port that the listener tells in its first line, which may come in pieces."""
    line = b""
    for piece in pieces:
        line += piece
        if b"\n" in line or len(line) > LONGEST_PORT:
            break
    told = line.partition(b"\n")[0].decode("ascii", "replace").strip()
    if not (told.isdecimal() and len(told) <= LONGEST_PORT and 0 < int(told) < 65536):
        raise UnreachableError(
            f"{head.node.typed}: {head.node.python} was asked to listen and told no port but {told[:100]!r}",
            hint="what its Python prints when it starts (sitecustomize.py, a script in its place) has to go away",
        )
    return int(told)


def _addresses(head: EnteredHost) -> list[str]:
    """What the first machine may be called by the others: its own interfaces, then the learner's own word for it."""
    own = [address for name, address in head.facts.addresses.items() if not _inward(name, address)]
    return list(dict.fromkeys([*own, head.node.address, "127.0.0.1"]))


def _inward(interface: str, address: str) -> bool:
    return address.startswith("127.") or interface.startswith(("docker", "br-", "virbr", "veth", "cni", "flannel"))
