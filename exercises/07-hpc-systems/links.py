"""Time the links of this computer: a copy inside a process, and a transfer to another process by shared memory or TCP.

One processor copies, without torch. Started as a program, this file is the other process.
"""

from __future__ import annotations

import mmap
import os
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from types import TracebackType

INSIDE, SHARED, TCP = "inside a process", "shared memory", "TCP, loopback"
_SHARE, _SEND, _SUM = b"S", b"T", b"C"


class Links:
    """Moves up to `limit` bytes over each link. Use it in a `with`, after which the other process ends."""

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._source = memoryview(bytearray(os.urandom(min(limit, 1 << 20)) * -(-limit // (1 << 20))))[:limit]
        self._target = memoryview(bytearray(limit))

    def __enter__(self) -> Links:  # noqa: PYI034 (Self is newer than Python 3.10)
        with tempfile.TemporaryFile(dir=_memory_folder()) as file, socket.create_server(("127.0.0.1", 0)) as server:
            file.truncate(self._most)
            self._shared = mmap.mmap(file.fileno(), self._most)
            self.control, child_end = socket.socketpair()
            with child_end:
                ends = [file.fileno(), child_end.fileno()]
                command = [sys.executable, __file__, *map(str, ends), str(self._most), str(server.getsockname()[1])]
                self._other = subprocess.Popen(command, pass_fds=ends)
            server.settimeout(30)
            self.tcp, _ = server.accept()
        self.tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for end in (self.tcp, self.control):
            end.settimeout(30)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.control.close()  # the other process, waiting for the next command, then ends
        self.tcp.close()
        self._other.wait()
        self._shared.close()

    def move(self, way: str, size: int) -> None:
        """Move `size` bytes over a link, and wait until they have arrived."""
        if way == INSIDE:
            self._target[:size] = self._source[:size]
        elif way == SHARED:
            self._shared[:size] = self._source[:size]
            self._ask(_SHARE, size)
            self.control.recv(1)
        else:
            self._ask(_SEND, size)
            self.tcp.sendall(self._source[:size])
            self.tcp.recv(1)

    def has_arrived(self, way: str, size: int) -> bool:
        """Return whether the last bytes arrived unchanged, judging by their CRC-32."""
        if way == INSIDE:
            checksum = zlib.crc32(self._target[:size])
        else:
            self._ask(_SUM, size)
            checksum = int.from_bytes(self.control.recv(4), "big")
        return checksum == zlib.crc32(self._source[:size])

    def time(self, way: str, size: int, *, budget_s: float = 0.08, at_least: int = 5) -> list[float]:
        """Return the seconds of several moves after two cold ones."""
        for _ in range(2):
            self.move(way, size)
        seconds: list[float] = []
        while len(seconds) < at_least or sum(seconds) < budget_s:
            start = time.perf_counter()
            self.move(way, size)
            seconds.append(time.perf_counter() - start)
        return seconds

    def _ask(self, command: bytes, size: int) -> None:
        self.control.sendall(command + size.to_bytes(8, "big"))


def sizes_up_to(limit: int) -> list[int]:
    """Return sizes from 64 KiB up to `limit` bytes, each twice the previous one."""
    sizes = [1 << 16]
    while 2 * sizes[-1] <= limit:
        sizes.append(2 * sizes[-1])
    return sizes


def _memory_folder() -> str | None:
    """Return a folder whose files are in memory: /dev/shm on Linux, otherwise the usual folder."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _run_receiver(shared_fd: int, control_fd: int, maximum: int, port: int) -> None:
    """Receive and confirm data until the first process ends."""
    buffer = memoryview(bytearray(maximum))
    with (
        mmap.mmap(shared_fd, maximum) as shared,
        socket.socket(fileno=control_fd) as control,
        socket.create_connection(("127.0.0.1", port)) as tcp,
    ):
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while order := control.recv(9, socket.MSG_WAITALL):
            size = int.from_bytes(order[1:], "big")
            if order[:1] == _SHARE:
                buffer[:size] = memoryview(shared)[:size]
                control.sendall(b"k")
            elif order[:1] == _SEND:
                _receive(tcp, buffer[:size])
                tcp.sendall(b"k")
            else:
                control.sendall(zlib.crc32(buffer[:size]).to_bytes(4, "big"))


def _receive(tcp: socket.socket, into: memoryview) -> None:
    while into and (count := tcp.recv_into(into)):
        into = into[count:]


if __name__ == "__main__":
    _run_receiver(*map(int, sys.argv[1:]))
