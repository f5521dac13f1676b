from __future__ import annotations

import random
import socket
import threading
import tracemalloc

import pytest

from gpucourse.remote.sockets import MOST_PACKET, ArrivedData, RegularChecks, packet_socket
from tests.waiting import STUCK_S, until


def test_a_packet_of_a_size_that_no_server_sends_is_refused() -> None:
    ours, theirs = socket.socketpair()
    with packet_socket(ours, 5.0) as sock, theirs:
        theirs.sendall(b"hello")
        with pytest.raises(OSError, match="announces a packet of 1048577 bytes"):
            sock.recv(MOST_PACKET + 1)
        assert sock.recv(MOST_PACKET) == b"hello", "nothing was read of the one that was refused"


def test_what_is_read_ahead_is_given_in_its_order() -> None:
    ours, theirs = socket.socketpair()
    sent = random.Random(3).randbytes(1 << 20)
    with packet_socket(ours, STUCK_S) as sock, theirs:
        sender = threading.Thread(target=theirs.sendall, args=(sent,))
        sender.start()
        taken, count = bytearray(), 0
        while len(taken) < len(sent):
            count += 1
            piece = sock.recv(16 if count % 2 else 50_000)
            assert 0 < len(piece) <= 50_000
            taken += piece
        sender.join(STUCK_S)
        theirs.shutdown(socket.SHUT_WR)
        assert bytes(taken) == sent
        assert sock.recv(16) == b"", "the end"


def test_what_a_channel_received_is_read_as_it_came() -> None:
    chance, arrived = random.Random(4), ArrivedData()
    sent = chance.randbytes(3 << 20)

    def feed() -> None:
        at = 0
        while at < len(sent):
            piece = sent[at : at + chance.choice([1, 2, 700, 9000, 1 << 17])]
            arrived.feed(piece)
            at += len(piece)
        arrived.feed(b"")
        arrived.close()

    feeder = threading.Thread(target=feed)
    feeder.start()
    taken = bytearray()
    while piece := arrived.read(100_000, STUCK_S):
        assert len(piece) <= 100_000
        taken += piece
    feeder.join(STUCK_S)
    assert bytes(taken) == sent
    assert len(arrived) == 0
    assert arrived.read(1) == b"", "the end is told again"


def test_data_that_do_not_come_are_waited_for_so_long() -> None:
    with pytest.raises(TimeoutError):
        ArrivedData().read(1, 0.01)


def test_data_that_came_byte_by_byte_take_no_memory_of_their_own() -> None:
    arrived = ArrivedData()
    tracemalloc.start()
    for _ in range(200_000):
        arrived.feed(b"12")
    taken, _most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(arrived) == 400_000
    assert taken < 2 * len(arrived)


def test_one_thread_calls_every_check_until_it_answers_no() -> None:
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
