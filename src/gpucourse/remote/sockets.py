"""The socket below SSH, parts of its channels, and one thread that checks all connections."""

from __future__ import annotations

import errno
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from gpucourse.errors import NoAnswer
from gpucourse.model.node import Node
from gpucourse.remote.proxy import connect_through

MOST_PACKET = 1 << 20
"""Bytes. A server may send packets of 32 KiB; paramiko would allocate whatever length a packet claims to have."""
_FIRST_AHEAD, _MOST_AHEAD = 1 << 14, 1 << 18
"""Bytes that are read ahead: four times as many whenever all of them came at once."""
_SMALL, _JOINED = 1 << 13, 1 << 16


class PacketSocket(socket.socket):
    """Reads ahead, because paramiko asks for the length of a packet and then for the rest of it. Refuses to wait for a packet
    that no honest server sends."""

    _ahead = memoryview(b"")
    _at = _end = 0

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """Receive, as any socket does. Raises OSError if more bytes are requested than one packet has."""
        if bufsize > MOST_PACKET:
            raise OSError(errno.EMSGSIZE, f"the server announces a packet of {bufsize} bytes; the limit is {MOST_PACKET}")
        if self._at == self._end:
            if self._end == len(self._ahead) < _MOST_AHEAD:
                self._ahead = memoryview(bytearray(4 * self._end or _FIRST_AHEAD))
            self._at, self._end = 0, super().recv_into(self._ahead, 0, flags)
        data = bytes(self._ahead[self._at : min(self._at + bufsize, self._end)])
        self._at += len(data)
        return data


class ArrivedData:
    """Data that a channel received and that is not read yet. One thread feeds it, another reads.

    It replaces paramiko's own class, with the methods that a link uses: large pieces stay as they came; paramiko copies each
    four times. Small ones are joined: if a server sends byte by byte, their overhead would fill the memory.
    """

    def __init__(self) -> None:
        self._pieces: deque[bytes | bytearray] = deque()
        self._bytes, self._closed = 0, False
        self._changed = threading.Condition(threading.Lock())

    def __len__(self) -> int:
        return self._bytes

    def feed(self, data: bytes) -> None:
        """Add a piece that has arrived."""
        with self._changed:
            last = self._pieces[-1] if self._pieces else b""
            if len(data) >= _SMALL:
                self._pieces.append(data)
            elif isinstance(last, bytearray) and len(last) < _JOINED:
                last += data
            elif data:
                self._pieces.append(bytearray(data))
            self._bytes += len(data)
            self._changed.notify_all()

    def close(self) -> None:
        """Record that nothing more arrives."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def read(self, nbytes: int, timeout: float | None = None) -> bytes:
        """Return some of the data, at most that many bytes; none at the end. Raises TimeoutError if none comes in that many
        seconds."""
        taken: list[bytes | bytearray] = []
        with self._changed:
            if not self._changed.wait_for(lambda: self._pieces or self._closed, timeout):
                raise TimeoutError
            while self._pieces and nbytes:
                piece = self._pieces.popleft()
                if len(piece) > nbytes:
                    self._pieces.appendleft(piece[nbytes:])
                    piece = piece[:nbytes]
                taken.append(piece)
                nbytes -= len(piece)
                self._bytes -= len(piece)
        return b"".join(taken)


class ExchangeChannel(Protocol):
    """The part of an SSH channel that is used."""

    status_event: threading.Event
    exit_status: int
    out_window_size: int

    def recv(self, nbytes: int) -> bytes:
        """Receive some of standard output; empty at its end. Raises TimeoutError."""

    def recv_stderr_ready(self) -> bool:
        """Return whether some of standard error is here."""

    def recv_stderr(self, nbytes: int) -> bytes:
        """Receive some of standard error; empty at its end. Raises TimeoutError."""

    def send(self, s: bytes) -> int:
        """Send some of it; return how much, 0 if the channel is closed. Raises TimeoutError."""

    def settimeout(self, timeout: float | None) -> None:
        """Set the time that each of these waits."""

    def shutdown_write(self) -> None:
        """End standard input."""

    def close(self) -> None:
        """Close the channel."""


class LimitedEvent(threading.Event):
    """The event that exec_command waits for without a limit: a peer that froze after the channel was opened would block it for
    ever."""

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self._limit_s = limit_s

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set. Raises TimeoutError."""
        if not super().wait(self._limit_s if timeout is None else timeout):
            raise TimeoutError(f"no answer for {self._limit_s:g} s")
        return True


def packet_socket(plain: socket.socket, timeout_s: float) -> PacketSocket:
    """Return the same connection as a PacketSocket."""
    sock = PacketSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
    sock.settimeout(timeout_s)
    return sock


class RegularChecks:
    """Calls all its checks every `every_s` seconds from one thread, each until it returns False. The thread ends with the last
    of them."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._checks: list[Callable[[], bool]] = []
        self._lock, self._over = threading.Lock(), threading.Event()

    def add(self, check: Callable[[], bool]) -> None:
        """Call this one, too, from the next time on. It must not block."""
        with self._lock:
            self._checks.append(check)
            if len(self._checks) == 1:
                self._over = threading.Event()
                threading.Thread(target=self._run, args=(self._over,), name="ssh-checks", daemon=True).start()

    def drop(self, check: Callable[[], bool]) -> None:
        """Stop calling this one; do nothing if it has returned False."""
        with self._lock:
            self._checks = [other for other in self._checks if other != check]
            if not self._checks:
                self._over.set()

    def _run(self, over: threading.Event) -> None:
        while not over.wait(self._every_s):
            with self._lock:
                checks = list(self._checks)
            for check in checks:
                if not check():
                    self.drop(check)


def dial(node: Node, timeout_s: float) -> PacketSocket:
    """Return a connection to the SSH server of a node, by its proxy command if it has one. Raises UnreachableError."""
    if node.proxy:
        return packet_socket(connect_through(node, timeout_s), timeout_s)
    try:
        dialled = socket.create_connection((node.address, node.port), timeout_s)
    except OSError as error:
        raise make_no_answer_error(node, str(error.strerror or error).lower()) from error
    sock = packet_socket(dialled, timeout_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def make_no_answer_error(node: Node, why: str) -> NoAnswer:
    """Return the error for a node at whose address no SSH server answers."""
    return NoAnswer(
        f"{node.label} does not answer SSH at {node.address}:{node.port}: {why}",
        hint="gpucourse status shows which nodes are alive; gpucourse deploy brings a dead one back",
    )
