"""Start the process of a session on pipes, or on its own terminal, and pass bytes through them in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

END_OF_INPUT = b"\x04"  # the end of the input for a terminal


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """The terminal that the client requested. Its size is in characters."""

    kind: str
    columns: int
    rows: int


@dataclass(kw_only=True)
class Child:
    """A running process, the leader of its session and group, with our ends of its streams. `errors` is None on a terminal."""

    process: asyncio.subprocess.Process
    stdin: int | None
    stdout: int
    errors: int | None
    on_terminal: bool

    async def end_input(self) -> None:
        """Send the process the end of its input."""
        if self.stdin is None:
            return
        if self.on_terminal:
            with contextlib.suppress(OSError):
                os.write(self.stdin, END_OF_INPUT)
        else:
            self.close_input()

    def close_input(self) -> None:
        """Close our end of the input, unless it is the terminal, which is also the output."""
        if self.stdin is not None and self.stdin != self.stdout:
            os.close(self.stdin)
            self.stdin = None

    def resize(self, columns: int, rows: int) -> None:
        """Set the new size of the client's window. The kernel informs the process."""
        if self.on_terminal:
            _set_size(self.stdout, columns, rows)

    def close(self) -> None:
        """Close our ends of the streams."""
        self.close_input()
        os.close(self.stdout)
        if self.errors is not None:
            os.close(self.errors)


async def start(argv: Sequence[str | bytes], *, environment: dict[str, str], cwd: Path, terminal: Terminal | None) -> Child:
    """Start and return the process, in a new session, on `terminal` or, if that is None, on three pipes. Raises OSError."""
    with ExitStack() as on_error, ExitStack() as child_ends:
        if terminal is None:
            pipes = []
            for reading in (True, False, False):  # the child's ends of stdin, stdout, stderr
                child_end, own_end = os.pipe() if reading else reversed(os.pipe())
                child_ends.callback(os.close, child_end)
                on_error.callback(os.close, own_end)
                pipes.append((child_end, own_end))
            streams = [child_end for child_end, _own_end in pipes]
            stdin, stdout, errors = (own_end for _child_end, own_end in pipes)
        else:
            stdin, slave = pty.openpty()
            on_error.callback(os.close, stdin)
            child_ends.callback(os.close, slave)
            _set_size(slave, terminal.columns, terminal.rows)
            streams, stdout, errors = [slave] * 3, stdin, None
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            cwd=cwd,
            env=environment,
            start_new_session=True,
            # The new process makes its standard input the controlling terminal of its session.
            preexec_fn=partial(fcntl.ioctl, 0, termios.TIOCSCTTY, 0) if terminal else None,
        )
        on_error.pop_all()
    child = Child(process=process, stdin=stdin, stdout=stdout, errors=errors, on_terminal=terminal is not None)
    for handle in (stdin, stdout, errors):
        if handle is not None:
            os.set_blocking(handle, False)
    return child


def _set_size(handle: int, columns: int, rows: int) -> None:
    """Set a terminal's size. If the client sent none, it is 80 by 24."""
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows or 24, columns or 80, 0, 0))


CHUNK = 1 << 17


async def read_some(handle: int) -> bytes:
    """Return the next bytes, or no bytes at the end of the input. A terminal's input ends when its last user closes it."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(handle, CHUNK)
        except BlockingIOError:
            await _ready(handle, loop.add_reader, loop.remove_reader)
        except OSError as error:
            if error.errno == errno.EIO:
                return b""
            raise


async def write_all(handle: int, data: bytes) -> None:
    """Write every byte. Raises BrokenPipeError if the other end was closed."""
    loop = asyncio.get_running_loop()
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(handle, remaining) :]
        except BlockingIOError:
            await _ready(handle, loop.add_writer, loop.remove_writer)


async def _ready(handle: int, watch: Callable[..., object], remove_watch: Callable[[int], object]) -> None:
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    watch(handle, _wake, waiting)
    try:
        await waiting
    finally:
        remove_watch(handle)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
