"""Carry out one command on one SSH channel.

Standard input is sent while both outputs are read, so that neither side can wait for the other. No input is sent before the
command has begun, because the start file of a login shell might read it.

A cut connection is never mistaken for a result, and the login shell's output is never mistaken for the command's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

import paramiko

from gpucourse.errors import NodeUntrusted, UnreachableError
from gpucourse.remote.login_shell import MAX_NOISE, OwnOutput, Request, last_words
from gpucourse.remote.patience import PACE
from gpucourse.units import format_bytes

LOST = (OSError, EOFError, paramiko.SSHException)
"""The errors that a channel may raise when its connection is lost."""

MAX_ANSWER = 4 << 20
"""The maximum number of bytes of standard output that `answer` reads."""

_PIECE = 1 << 20
_PACKET = (1 << 15) - 64  # the most that paramiko sends in one packet; the last 64 bytes would need a packet of their own
_STDERR_KEPT = 256 << 10
_ERRORS_AT_ONCE = 16  # pieces of standard error that are read between two pieces of standard output
_BESIDE_S = 0.25  # the end mark of one stream follows the other's within this time, unless the two streams are joined


class Channel(Protocol):
    """The streams of one command under way. Implemented by paramiko's channel, and by `process_channel.ProcessChannel`.

    `exit_status`: negative if the connection was lost before the status arrived.
    """

    status_event: threading.Event
    exit_status: int

    def settimeout(self, timeout: float) -> None:
        """Set how long `recv`, `recv_stderr` and `send` wait before they raise TimeoutError."""

    def recv(self, nbytes: int) -> bytes:
        """Return the next bytes of standard output, or no bytes at its end."""

    def recv_stderr(self, nbytes: int) -> bytes:
        """Return the next bytes of standard error, or no bytes at its end."""

    def recv_stderr_ready(self) -> bool:
        """Return whether `recv_stderr` would return bytes without waiting."""

    def send(self, s: bytes) -> int:
        """Send some of the bytes and return their number, or 0 if the command has closed its input."""

    def shutdown_write(self) -> None:
        """End the command's standard input."""

    def close(self) -> None:
        """Close the channel; the command may continue."""


class EndedEarly(UnreachableError):
    """A streaming command ended with an exit code other than 0, `command_code`. `stderr` is the end of its standard error."""

    def __init__(self, name: str, code: int, stderr: bytes) -> None:
        words = last_words(stderr, 2000) or "it printed nothing"
        super().__init__(f"{name}: the command on the node ended with code {code}: {words}")
        self.command_code, self.stderr = code, stderr


class Silent(UnreachableError):
    """The connection is open, but the command has been silent for too long. Another request would only wait again."""


class Exchange:
    """A command that has been started on a channel. Reading its standard output also sends its input and reads its standard
    error."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        request: Request,
        silence_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._channel, self._silence_s, self._clock = name, channel, silence_s, clock
        self._own_stdout = OwnOutput(request.stdout, request.end)
        self._own_stderr = OwnOutput(request.stderr, request.end)
        self._began = self._moved = clock()
        self._stdin, self._sent, self._input_end = request.stdin, 0, None if request.stdin else self._began
        self._feed_error: Exception | None = None
        self._stderr, self._stderr_over = bytearray(), False
        channel.settimeout(min(max(silence_s / 4, 0.02), 1.0))

    def stdout(self) -> Iterator[bytes]:
        """Yield the command's standard output in pieces that are not empty, until it ends.

        Raises UnreachableError if the login shell ends, prints too much, or takes too long before the command begins.
        """
        while not self._own_stdout.ended and (piece := self._receive()) is not None:
            if piece:
                yield piece
        if not self._own_stdout.begun:
            raise self._make_not_begun_error(f"ended with code {self._read_exit_status()}")
        if remainder := self._own_stdout.rest():
            yield remainder

    def stdout_then_code(self) -> Iterator[bytes]:
        """Yield standard output in pieces. Raise EndedEarly at the end if the exit code is not 0."""
        yield from self.stdout()
        if (code := self.code()) != 0:
            raise EndedEarly(self._name, code, self.stderr())

    def answer(self) -> bytes:
        """Return all of standard output.

        Raises NodeUntrusted if it is longer than MAX_ANSWER. Raises UnreachableError if it is not complete after twice the
        permitted silence, counted from the end of the input.
        """
        data, limit_s = bytearray(), 2 * self._silence_s
        for piece in self.stdout():
            data += piece
            if len(data) > MAX_ANSWER:
                raise NodeUntrusted(
                    f"{self._name}: the answer of a command has more than {MAX_ANSWER >> 20} MiB",
                    hint="it was not used. Another program may be answering there: gpucourse status",
                )
            if self._input_end is not None and self._clock() - self._input_end >= limit_s:
                raise self._make_late_error(f"the command's answer is not complete after {limit_s:g} s")
        return bytes(data)

    def code(self) -> int:
        """Return the exit code, after standard output has ended. Raises UnreachableError if no code arrived."""
        self._read_stderr_to_end()
        if self._feed_error is not None:
            raise self._feed_error
        if self._own_stdout.code is None:
            raise self._cut()
        return self._own_stdout.code

    def stderr(self) -> bytes:
        """Return the command's standard error, after the command has ended."""
        return bytes(self._stderr)

    def read_rest(self, within_s: float) -> None:
        """Wait up to `within_s` seconds for the command to end, and discard the rest of its output."""
        until = self._clock() + within_s
        with suppress(UnreachableError):
            while not self._own_stdout.ended and self._clock() < until and self._receive() is not None:
                pass

    def close(self) -> None:
        """Close the channel, whatever state it is in."""
        with suppress(*LOST):
            self._channel.close()

    def _receive(self) -> bytes | None:
        """Return the command's own bytes among those that arrive next. Return no bytes if nothing arrives for a while, and None
        at the end of the stream."""
        self._read_ready_stderr()
        piece, had_begun = b"", self._own_stdout.begun
        try:
            data = self._channel.recv(_PIECE)
        except TimeoutError:
            data = None
        except LOST as error:
            raise self._cut() from error
        if data:
            piece = self._own_stdout.take(data)
        if self._own_stdout.begun and not had_begun:
            self._began = self._clock()
            if self._input_end is None:
                threading.Thread(target=self._feed, name="ssh-input", daemon=True).start()
        if data and self._own_stdout.begun:
            self._moved = self._clock()
        self._check_time()
        return None if data == b"" else piece

    def _check_time(self) -> None:
        now = self._clock()
        if self._feed_error is not None:
            raise self._feed_error
        if not self._own_stdout.begun:
            self._check_login_shell(now - self._began >= self._silence_s)
        elif now - self._moved >= self._silence_s:
            raise self._make_late_error(f"the command sent nothing for {self._silence_s:g} s")
        elif self._input_end is None and now - self._began >= self._silence_s + self._sent / PACE:
            raise self._make_late_error(f"the command read only {self._sent} bytes of its input in {now - self._began:.0f} s")

    def _check_login_shell(self, is_late: bool) -> None:
        """Raise an error if the login shell has printed too much, or has taken too long, before the command begins."""
        noise = max(self._own_stdout.noise_bytes, self._own_stderr.noise_bytes)
        if noise > MAX_NOISE:
            raise self._make_not_begun_error(f"printed more than {format_bytes(MAX_NOISE)}")
        if is_late and noise:
            raise self._make_not_begun_error(f"printed {format_bytes(noise)} in {self._silence_s:g} s")
        if is_late:
            raise self._make_not_begun_error(f"took more than {self._silence_s:g} s", Silent)

    def _feed(self) -> None:
        pieces = (self._stdin,) if isinstance(self._stdin, bytes) else self._stdin
        try:
            if all(map(self._send, pieces)):
                self._channel.shutdown_write()
        except LOST:  # the thread that waits for the output gets the same error
            return
        except Exception as error:  # noqa: BLE001  # the source of the bytes failed: raised by the call that waits for the code
            self._feed_error = error
            self.close()
        self._input_end = self._clock()

    def _send(self, piece: bytes) -> bool:
        """Send the whole piece. Return False if the command has closed its input."""
        sent_bytes = 0
        while sent_bytes < len(piece):
            try:
                count = self._channel.send(piece[sent_bytes : sent_bytes + _PACKET])
            except TimeoutError:
                continue
            if not count:
                return False
            sent_bytes += count
            self._sent += count
            self._moved = self._clock()
        return True

    def _read_ready_stderr(self) -> None:
        """Read standard error that has already arrived, but only a limited amount, so that standard output is also read."""
        for _ in range(_ERRORS_AT_ONCE):
            if self._stderr_over or not self._channel.recv_stderr_ready():
                return
            self._receive_stderr()

    def _receive_stderr(self) -> None:
        """Read some of standard error and keep its end. Standard error does not count as progress, because a command may print
        errors forever."""
        try:
            data = self._channel.recv_stderr(_PIECE)
        except TimeoutError:
            return
        except LOST:
            data = b""
        self._stderr += self._own_stderr.take(data) if data else self._own_stderr.rest()
        del self._stderr[:-_STDERR_KEPT]
        self._stderr_over = not data or self._own_stderr.ended

    def _read_stderr_to_end(self) -> None:
        """Wait until all of standard error has arrived, but only for a moment if it is joined to standard output."""
        end_of_output = self._clock()
        self._channel.settimeout(_BESIDE_S / 4)
        while not self._stderr_over:
            self._receive_stderr()
            if self._clock() - end_of_output >= (self._silence_s if self._own_stderr.begun else _BESIDE_S):
                return

    def _read_exit_status(self) -> int:
        """Return the exit code of a login shell that ended before the command began."""
        self._read_stderr_to_end()
        if not self._channel.status_event.wait(self._silence_s) or self._channel.exit_status < 0:
            raise self._cut()
        return self._channel.exit_status

    def _make_late_error(self, reason: str) -> Silent:
        return Silent(f"{self._name}: {reason}", hint="the node may be overloaded or frozen: gpucourse status")

    def _make_not_begun_error(self, event: str, kind: type[UnreachableError] = UnreachableError) -> UnreachableError:
        words = " ".join(filter(None, (self._own_stdout.noise(), self._own_stderr.noise())))
        return kind(
            f"{self._name}: the login shell {event} before our command began; it printed: {words or 'nothing'}",
            hint="with ssh and that account, the command true must end immediately, with code 0. If not, see its ~/.bashrc",
        )

    def _cut(self) -> UnreachableError:
        return UnreachableError(
            f"{self._name}: the connection was cut before the command's exit code arrived",
            hint="gpucourse status shows which nodes are alive; what was started on the node keeps running",
        )
