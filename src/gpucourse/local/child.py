"""Start the process of a session: on pipes, or on its own terminal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

END_OF_INPUT = b"\x04"  # the end of the input for a terminal


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """The terminal that the client requested: its kind, and its size in characters."""

    kind: str
    columns: int
    rows: int


@dataclass(kw_only=True)
class Child:
    """A running process, the leader of its session and group, with our ends of its streams. On a terminal `errors` is None."""

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
        """Close our end of the input."""
        if self.stdin is not None and self.stdin != self.stdout:
            os.close(self.stdin)
            self.stdin = None

    def resize(self, columns: int, rows: int) -> None:
        """Set the new size of the client's window; the kernel tells the process."""
        if self.on_terminal:
            set_size(self.stdout, columns, rows)

    def close(self) -> None:
        """Close our ends of the streams."""
        self.close_input()
        os.close(self.stdout)
        if self.errors is not None:
            os.close(self.errors)


async def start(argv: Sequence[str | bytes], *, environment: dict[str, str], cwd: Path, terminal: Terminal | None) -> Child:
    """Start the process in a new session. Raises OSError."""
    if terminal is not None:
        return await _start_on_terminal(argv, environment, cwd, terminal)
    return await _start_on_pipes(argv, environment, cwd)


async def _start_on_pipes(argv: Sequence[str | bytes], environment: dict[str, str], cwd: Path) -> Child:
    child_ends: list[int] = []
    own_ends: list[int] = []
    try:
        for reading in (True, False, False):  # their ends of stdin, stdout, stderr
            reader, writer = os.pipe()
            child_ends.append(reader if reading else writer)
            own_ends.append(writer if reading else reader)
        process = await _spawn(argv, environment, cwd, child_ends)
    except BaseException:
        _close(own_ends)
        raise
    finally:
        _close(child_ends)
    for handle in own_ends:
        os.set_blocking(handle, False)
    return Child(process=process, stdin=own_ends[0], stdout=own_ends[1], errors=own_ends[2], on_terminal=False)


async def _start_on_terminal(argv: Sequence[str | bytes], environment: dict[str, str], cwd: Path, terminal: Terminal) -> Child:
    master, slave = pty.openpty()
    try:
        set_size(slave, terminal.columns, terminal.rows)
        process = await _spawn(argv, environment, cwd, [slave] * 3, make_controlling)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    os.set_blocking(master, False)
    return Child(process=process, stdin=master, stdout=master, errors=None, on_terminal=True)


async def _spawn(
    argv: Sequence[str | bytes],
    environment: dict[str, str],
    cwd: Path,
    streams: Sequence[int],
    prepare: Callable[[], None] | None = None,
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        cwd=cwd,
        env=environment,
        start_new_session=True,
        preexec_fn=prepare,
    )


def make_controlling() -> None:
    """Make the standard input of the new process the controlling terminal of its session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def set_size(handle: int, columns: int, rows: int) -> None:
    """Set a terminal's size; 80 by 24 if the client sent none."""
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows or 24, columns or 80, 0, 0))


def _close(handles: Sequence[int]) -> None:
    for handle in handles:
        os.close(handle)
