"""The socket below SSH, and what a channel received."""

from __future__ import annotations

import socket
import threading

import pytest

from gpucourse.remote.sockets import MOST_PACKET, ArrivedData, RegularChecks, packet_socket
from tests.waiting import STUCK_S, until


def test_recv_reads_ahead_and_refuses_a_packet_that_is_too_long() -> None:
    ours, theirs = socket.socketpair()
    with packet_socket(ours, STUCK_S) as sock, theirs:
        theirs.sendall(b"length" + b"the rest")
        assert (sock.recv(6), sock.recv(100)) == (b"length", b"the rest")
        with pytest.raises(OSError, match=f"a packet of {MOST_PACKET + 1} bytes"):
            sock.recv(MOST_PACKET + 1)
        theirs.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_arrived_data_returns_what_was_fed(size: int) -> None:
    data, text = ArrivedData(), bytes(range(256)) * 100
    for at in range(0, len(text), size):
        data.feed(text[at : at + size])
    assert len(data) == len(text)
    assert data.read(10) + data.read(1 << 20) == text
    with pytest.raises(TimeoutError):
        data.read(1, timeout=0.0)
    data.close()
    assert data.read(1) == b""


def test_regular_checks_end_with_the_last_check() -> None:
    checks, calls = RegularChecks(0.001), list[int]()

    def check() -> bool:
        calls.append(1)
        return len(calls) < 3

    before = set(threading.enumerate())
    checks.add(check)
    until(lambda: len(calls) == 3, "the last check")
    for thread in set(threading.enumerate()) - before:
        thread.join(STUCK_S)
        assert not thread.is_alive()
