from __future__ import annotations

import socket

import pytest

from gpucourse.remote.sockets import MOST_PACKET, packet_socket


def test_a_packet_of_a_size_that_no_server_sends_is_refused() -> None:
    ours, theirs = socket.socketpair()
    with packet_socket(ours, 5.0) as sock, theirs:
        theirs.sendall(b"hello")
        with pytest.raises(OSError, match="announces a packet of 1048577 bytes"):
            sock.recv(MOST_PACKET + 1)
        assert sock.recv(MOST_PACKET) == b"hello", "nothing was read of the one that was refused"
