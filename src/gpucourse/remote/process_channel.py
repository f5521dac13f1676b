"""A channel that is a process on this computer: the ssh command, or a shell; and the link to this computer itself."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.command_link import CommandLink

_END_S = 1.0


class ProcessChannel:
    """The streams of a process. Implements exchange.Channel.

    `lost_code`: the exit code that means that no command ran, or None.
    `ends`: whether `close` ends the process. Otherwise the process only loses its streams.
    """

    def __init__(
        self, words: Sequence[str], *, env: Mapping[str, str] | None = None, lost_code: int | None = None, ends: bool
    ) -> None:
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,  # Ctrl-C in the terminal is for this program
        )
        self._lost_code, self._ends, self._timeout_s = lost_code, ends, 1.0
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = (_Stream(stream) for stream in streams if stream is not None)
        os.set_blocking(self._stdin.fileno(), False)
        self.status_event = threading.Event()
        self.exit_status = -1
        self._lost = self._dropped = False
        threading.Thread(target=self._wait, name="process-channel", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Return whether the process is running."""
        return not self.status_event.is_set()

    @property
    def lost(self) -> bool:
        """Return whether the process has ended with `lost_code`, before `close`."""
        return self._lost

    def settimeout(self, timeout: float) -> None:
        """Set how long `recv`, `recv_stderr` and `send` wait before they raise TimeoutError."""
        self._timeout_s = timeout

    def recv(self, nbytes: int) -> bytes:
        """Return the next bytes of standard output, or no bytes at its end.

        Also raises TimeoutError if only standard error has bytes: a pipe holds few, and the process waits until they are read.
        """
        return self._stdout.read(nbytes, self._timeout_s, beside=self._stderr)

    def recv_stderr(self, nbytes: int) -> bytes:
        """Return the next bytes of standard error, or no bytes at its end."""
        return self._stderr.read(nbytes, self._timeout_s)

    def recv_stderr_ready(self) -> bool:
        """Return whether `recv_stderr` would return bytes without waiting."""
        return self._stderr.is_ready()

    def send(self, s: bytes) -> int:
        """Send some of the bytes and return their number, or 0 if the process has closed its input."""
        return self._stdin.write(s, self._timeout_s)

    def shutdown_write(self) -> None:
        """End the process's standard input."""
        self._stdin.close()

    def close(self) -> None:
        """Close the streams. End the process if it must not outlive its channel."""
        if self._stdout.over:
            self.status_event.wait(_END_S)  # it is about to end by itself, and its code says whether it was lost
        self._dropped = True
        if self._ends and self.alive:
            self._process.terminate()
        for stream in (self._stdin, self._stdout, self._stderr):
            stream.close()

    def wait(self, timeout_s: float) -> bool:
        """Return whether the process ends within `timeout_s`."""
        return self.status_event.wait(timeout_s)

    def _wait(self) -> None:
        code = self._process.wait()
        self._lost = code == self._lost_code and not self._dropped
        self.exit_status = -1 if self._lost else code
        self.status_event.set()


class _Stream:
    """One end of a pipe, which one thread may close while another one uses it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._using, self.over = stream, threading.Lock(), False

    @property
    def is_open(self) -> bool:
        return not self._stream.closed and not self.over

    def fileno(self) -> int:
        return self._stream.fileno()

    def read(self, count: int, timeout_s: float, beside: _Stream | None = None) -> bytes:
        """Return the next bytes. Raises TimeoutError if none arrive, or if some arrive on the stream `beside` first."""
        with self._using:
            if self._stream.closed:
                return b""
            others = [beside.fileno()] if beside is not None and beside.is_open else []
            if self.fileno() not in _poll(timeout_s, self.fileno(), *others):
                raise TimeoutError
            data = os.read(self.fileno(), count)
            self.over = not data
            return data

    def is_ready(self) -> bool:
        with self._using:
            return not self._stream.closed and bool(_poll(0.0, self.fileno()))

    def write(self, data: bytes, timeout_s: float) -> int:
        with self._using:
            try:
                if self._stream.closed:
                    return 0
                if not _poll(timeout_s, self.fileno(), event=select.POLLOUT):
                    raise TimeoutError
                return os.write(self.fileno(), data)
            except BlockingIOError as error:
                raise TimeoutError from error
            except BrokenPipeError:
                return 0

    def close(self) -> None:
        with self._using:
            self._stream.close()


def _poll(timeout_s: float, *streams: int, event: int = select.POLLIN) -> set[int]:
    """Return the streams that are ready within the time."""
    poll = select.poll()
    for stream in streams:
        poll.register(stream, event)
    return {number for number, _event in poll.poll(timeout_s * 1000)}


class LocalLink(CommandLink):
    """A link whose commands are processes of this computer. Implements ports.Link."""

    def __init__(self, node: Node, shared: str = "") -> None:
        super().__init__(node, shared)
        self._open = True

    @property
    def alive(self) -> bool:
        """Return True until `close` is called."""
        return self._open

    def close(self) -> None:
        """Refuse further commands. Processes that have already been started keep running."""
        self._open = False

    def _start(self, line: str, _timeout_s: float, /) -> ProcessChannel:
        if not self._open:
            raise UnreachableError(f"{self.node.label}: the link is closed")
        env = {name: value for name, value in os.environ.items() if not name.startswith("GPUCOURSE_")}
        try:
            return ProcessChannel(["/bin/sh", "-c", line], env=env, ends=False)
        except OSError as error:  # the user may have no more processes, or no more memory
            raise UnreachableError(
                f"{self.node.label}: no shell can be started here: {error.strerror or error}",
                hint="ulimit -u shows how many processes you may have; end some, then type the command again",
            ) from error
