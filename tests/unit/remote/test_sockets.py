from __future__ import annotations

import socket
import threading

import pytest

from gpucourse.remote.sockets import MOST_PACKET, ArrivedData, RegularChecks, packet_socket
from tests.waiting import STUCK_S, until


def test_recv_refuses_a_packet_larger_than_any_server_sends() -> None:
    ours, theirs = socket.socketpair()
    with packet_socket(ours, 5.0) as sock, theirs:
        theirs.sendall(b"hello")
        with pytest.raises(OSError, match="announces a packet of 1048577 bytes"):
            sock.recv(MOST_PACKET + 1)
        assert sock.recv(MOST_PACKET) == b"hello", "nothing was read of the one that was refused"


def test_read_raises_when_no_data_come() -> None:
    with pytest.raises(TimeoutError):
        ArrivedData().read(1, 0.01)


def test_checks_are_called_by_one_thread_until_they_return_false() -> None:
    callers: list[set[threading.Thread]] = [set() for _ in range(64)]
    goes_on = [True] * 64

    def check(number: int) -> bool:
        callers[number].add(threading.current_thread())
        return goes_on[number]

    checks = RegularChecks(0.001)
    tasks = [lambda number=number: check(number) for number in range(64)]
    for task in tasks:
        checks.add(task)
    until(lambda: all(callers), "every one was called")
    (thread,) = set().union(*callers)
    goes_on[1:] = [False] * 63
    checks.drop(tasks[0])
    thread.join(STUCK_S)
    assert not thread.is_alive(), "it ends with the last check"
    callers[0].clear()
    goes_on[0] = True
    checks.add(tasks[0])
    until(lambda: callers[0], "it begins again")
    assert callers[0] != {thread}
    checks.drop(tasks[0])
