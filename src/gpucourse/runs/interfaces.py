"""Asks a node which of its network interfaces leads to the other nodes."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING

from gpucourse.errors import MissingError
from gpucourse.model.node import Node
from gpucourse.outside.names import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpucourse.ports import Link
    from gpucourse.remote.fleet import Fleet

_DEVICE = re.compile(rb"\bdev (\S+)")
_NO_PROGRAM = 127  # the code of a shell


def interfaces(fleet: Fleet, nodes: Sequence[Node]) -> dict[str, str]:
    """Return the interface of each node that leads to the first of `nodes`; for the first one, the interface to the second.

    A simulated node that is not a separate machine has the loopback interface. Raises MissingError if a node has no route.
    """
    from gpucourse.remote.fleet import values

    if all(node.private_address == "127.0.0.1" for node in nodes):
        return {node.name: "lo0" if sys.platform == "darwin" else "lo" for node in nodes}
    first, second = nodes[0], nodes[1] if len(nodes) > 1 else nodes[0]

    def ask(link: Link) -> str:
        return find_interface(link, second if link.node.name == first.name else first)

    return dict(zip((node.name for node in nodes), values(fleet.do_on_each(ask, nodes)), strict=True))


def find_interface(link: Link, peer: Node) -> str:
    """Return the interface that leads from a node to another one. Raises MissingError if there is no route."""
    done = link.run(f"ip -o route get {shlex.quote(peer.private_address)}", timeout_s=20.0)
    if done.code == _NO_PROGRAM:
        raise MissingError(f"{link.node.label} has no program ip", hint="install it there: sudo apt-get install iproute2")
    match = _DEVICE.search(done.stdout)
    if not done.ok or match is None:
        said = printable((done.stderr or done.stdout).decode(errors="replace").strip()[-200:])
        raise MissingError(
            f"{link.node.label} has no route to {peer.label} at {peer.private_address}: {said or 'ip route says nothing'}",
            hint="the nodes must share a network",
        )
    from gpucourse.remote import answers

    try:
        return answers.interface(match[1].decode(errors="replace"))
    except ValueError as error:
        raise answers.make_untrusted_error(link.node.label, "the interface that it names", error) from error
