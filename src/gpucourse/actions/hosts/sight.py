"""By which address the machines see each other: tried out, since neither names nor the learner's own way to them tell."""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from gpucourse.actions.context import Context
from gpucourse.actions.hosts.entry import Entered
from gpucourse.errors import InfrastructureError
from gpucourse.model.event import NodeEvent
from gpucourse.model.node import Node
from gpucourse.ports import Link
from gpucourse.remote.fleet import Fleet, values
from gpucourse.remote.ssh import SshTransport

PATIENCE_S = 10
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


def seen_by_others(context: Context, entered: Sequence[Entered]) -> list[Node]:
    """The nodes with their private addresses: the first one's is an address that every other machine reached it by.

    Raises InfrastructureError that names who does not reach it.
    """
    head, others = entered[0], entered[1:]
    tried = _addresses(head)
    if not others:
        return [replace(head.node, private_address=tried[0])]
    word = uuid.uuid4().hex
    began = time.monotonic()
    listen = shlex.join([head.node.python, "-u", "-c", _LISTEN, word, str(PATIENCE_S * len(tried) + 10)])
    transport = SshTransport(context.paths.client_key)
    with (
        Fleet(transport, [head.node]) as door,
        door.link(head.node).stream(listen, silence_s=60.0) as pieces,
        Fleet(transport, [one.node for one in others]) as fleet,
    ):
        port = int(next(iter(pieces)).split()[0])

        def call(link: Link) -> dict[str, str]:
            done = link.run(shlex.join([link.node.python, "-c", _CALL, word, str(port), *tried]), timeout_s=60.0)
            return dict(line.split() for line in done.stdout.decode().splitlines())

        reached = values(fleet.each(call))
    shared = next((address for address in tried if all(address in found for found in reached)), None)
    if shared is None:
        silent = [one.said for one, found in zip(others, reached, strict=True) if not found]
        who = ", ".join(silent) if silent else "not all the others by the same one"
        raise InfrastructureError(
            f"{head.said} cannot be reached from {who}; tried: {', '.join(tried)}",
            hint="the machines must share a network, and let each other in: ask who keeps their firewall",
        )
    nodes = [replace(head.node, private_address=shared)]
    for one, found in zip(others, reached, strict=True):
        nodes.append(replace(one.node, private_address=found[shared]))
    for node in nodes:
        seconds = time.monotonic() - began
        context.watch(NodeEvent(node=node.name, step="address", ok=True, seconds=seconds, detail=node.private_address))
    return nodes


def _addresses(head: Entered) -> list[str]:
    """What the first machine may be called by the others: its own interfaces, then the learner's own word for it."""
    own = [address for name, address in head.premises.addresses.items() if not _inward(name, address)]
    return list(dict.fromkeys([*own, head.node.address, "127.0.0.1"]))


def _inward(interface: str, address: str) -> bool:
    return address.startswith("127.") or interface.startswith(("docker", "br-", "virbr", "veth", "cni", "flannel"))
