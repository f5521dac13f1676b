"""The socket below SSH."""

from __future__ import annotations

import errno
import socket

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
