"""The socket below SSH."""

from __future__ import annotations

import errno
import socket

from gpucourse.errors import NoAnswer
from gpucourse.model.node import Node
from gpucourse.remote.proxy import through

MOST_PACKET = 1 << 20
"""Bytes. A server may send packets of 32 KiB; paramiko would make room for whatever length a packet claims to have."""


class PacketSocket(socket.socket):
    """Refuses to wait for a packet that no honest server sends."""

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """As any socket does. Raises OSError where more is asked for than one packet has."""
        if bufsize > MOST_PACKET:
            raise OSError(errno.EMSGSIZE, f"the server announces a packet of {bufsize} bytes; the limit is {MOST_PACKET}")
        return super().recv(bufsize, flags)


def packet_socket(plain: socket.socket, timeout_s: float) -> PacketSocket:
    """The same connection as a PacketSocket."""
    sock = PacketSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
    sock.settimeout(timeout_s)
    return sock


def dial(node: Node, timeout_s: float) -> PacketSocket:
    """A connection to the SSH server of a node, by its proxy command where it has one. Raises UnreachableError."""
    if node.proxy:
        return packet_socket(through(node, timeout_s), timeout_s)
    try:
        dialled = socket.create_connection((node.address, node.port), timeout_s)
    except OSError as error:
        raise make_no_answer_error(node, str(error.strerror or error).lower()) from error
    sock = packet_socket(dialled, timeout_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def make_no_answer_error(node: Node, why: str) -> NoAnswer:
    """The error for a node at whose address nobody answers SSH."""
    return NoAnswer(
        f"{node.label} does not answer SSH at {node.address}:{node.port}: {why}",
        hint="gpucourse status shows which nodes are alive; gpucourse deploy brings a dead one back",
    )
