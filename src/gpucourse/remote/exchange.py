"""One command on one SSH channel: standard input is sent while both outputs are read by turns, so that neither side can wait
for the other. Silence has a limit; a cut connection is never mistaken for a result, nor a login shell's output for the
command's. The input is sent after the command has begun: a login shell whose start file reads its input would consume it.
Afterwards the shell on the channel waits for the next command, if it can accept one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from gpucourse.errors import NodeUntrusted, UnreachableError
from gpucourse.remote.login_shell import MOST_NOISE, OwnOutput, Request, Stdin, last_words
from gpucourse.remote.patience import PACE
from gpucourse.remote.sockets import ExchangeChannel
from gpucourse.units import format_bytes

CHANNELS = 8
"""Commands at a time on one connection: OpenSSH allows ten by default."""

_PIECE = 1 << 18
_PACKET = (1 << 15) - 64  # the most that paramiko sends in one packet; the last 64 bytes would need a packet of their own
_STDERR_KEPT = 256 << 10
_ERRORS_AT_ONCE = 16  # pieces of standard error that are read between two of standard output
_LOOK_S = 0.05
_BESIDE_S = 0.25  # the end mark of one stream follows the other's within this time, unless the two streams are joined

MAX_ANSWER = 4 << 20
"""The longest answer of a command that is read whole, in bytes of standard output."""


class EndedEarly(UnreachableError):
    """The command that streamed ended with a code other than 0, `command_code`; `stderr` is what it printed about that."""

    def __init__(self, name: str, code: int, stderr: bytes) -> None:
        said = last_words(stderr, 2000) or "it said nothing"
        super().__init__(f"{name}: the command on the node ended with code {code}: {said}")
        self.command_code, self.stderr = code, stderr


class Silent(UnreachableError):
    """The connection is open and the command has been silent for too long: another request would only wait again."""


class Exchange:
    """A command on `channel`: either the request itself started it there or, if a shell `waits` there, it is sent now. Reading
    its standard output also sends its input and reads its standard error.

    `lost` are the errors that the channel raises when its connection is lost.
    """

    def __init__(
        self,
        name: str,
        channel: ExchangeChannel,
        request: Request,
        silence_s: float,
        *,
        lost: tuple[type[Exception], ...],
        waits: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._name, self._channel, self._silence_s, self._lost = name, channel, silence_s, lost
        self._moved = self._started = self._clock()
        self._own_stdout = OwnOutput(request.stdout, request.end)
        self._own_stderr = OwnOutput(request.stderr, request.end)
        self._request, self._stdin, self._first_piece = request, request.input, b""
        self._input_ended: float | None = None
        self._sent, self._whole, self._channel_ended = 0, False, False
        self._feed_error: Exception | None = None
        self._stderr, self._stderr_over = bytearray(), False
        channel.settimeout(min(max(silence_s / 4, 0.02), 1.0))
        self._feeding: threading.Thread | None = None
        if waits:
            self._continue_shell(request)
        elif not self._stdin:
            self._input_ended = self._started

    def _continue_shell(self, request: Request) -> None:
        """Send the next command to a shell that waits; send the input too if the shell knows its length."""
        if not isinstance(self._stdin, bytes) or request.is_last:
            self._thread(self._send, request.next_line())
            return
        words = request.next_line() + self._stdin
        if len(words) <= min(self._channel.out_window_size, _PACKET):  # one packet, for which no reader has to make room
            self._feed(words)
        else:
            self._feeding = self._thread(self._feed, words)

    def begins(self) -> bool:
        """Wait until the command has begun. Return False if the shell that should run it ends before that.

        Raises UnreachableError as `stdout` does.
        """
        while not self._own_stdout.begun:
            if (piece := self._receive()) is None:
                return False
            self._first_piece += piece
        return True

    @property
    def can_go_on(self) -> bool:
        """Whether the command is over and its shell waits for another one."""
        over = self._own_stdout.ended and self._own_stderr.ended
        fed = self._feed_error is None and self._input_ended is not None
        return over and fed and not self._request.is_last and not self._channel_ended

    def stdout(self) -> Iterator[bytes]:
        """Yield the command's standard output in pieces, none of them empty, until its end.

        Raises UnreachableError if the login shell ends, prints too much, or needs too long before the command begins.
        """
        own = self._own_stdout
        if self._first_piece:
            yield self._first_piece
        while not own.ended and (piece := self._receive()) is not None:
            if piece:
                yield piece
        if not own.begun:
            raise self._not_begun(f"ended with code {self._exit_code()}")
        if held := own.rest():
            yield held

    def read_rest(self, within_s: float) -> None:
        """Read what the command still prints, for this long at most: after its end its shell can run another one."""
        until = self._clock() + within_s
        with suppress(UnreachableError):
            while not self._own_stdout.ended and self._clock() < until and self._receive() is not None:
                pass
        if self._own_stdout.ended:
            self._channel.settimeout(_LOOK_S)
            while not self._stderr_over and self._clock() < until:
                self._receive_stderr()

    def _receive(self) -> bytes | None:
        """Return the command's own bytes among those that arrive next, perhaps none after a while; None at the end of the
        stream."""
        self._take_ready_stderr()
        try:
            data = self._channel.recv(_PIECE)
        except TimeoutError:
            self._check_silence()
            return b""
        except self._lost as error:
            raise self._cut() from error
        if not data:
            return None
        begun, piece = self._own_stdout.begun, self._own_stdout.take(data)
        if not self._own_stdout.begun:
            self._check_silence()
            return b""
        self._moved = self._clock()
        if not begun and self._stdin and self._feeding is None and self._input_ended is None:
            self._started = self._moved
            self._feeding = self._thread(self._feed, self._stdin)
        return piece

    def answer(self) -> bytes:
        """Return all of standard output. Raises NodeUntrusted if it is longer than MAX_ANSWER, UnreachableError if it is not
        complete within twice the silence that is allowed, counted from the end of the input, or from the last part of it that
        the command read."""
        data = bytearray()
        self._whole = True
        for piece in self.stdout():
            data += piece
            if len(data) > MAX_ANSWER:
                raise NodeUntrusted(
                    f"{self._name}: the answer of a command has more than {MAX_ANSWER >> 20} MiB",
                    hint="it was not used. Another program may be answering there: gpucourse status",
                )
            self._check_whole()
        return bytes(data)

    def stdout_then_code(self) -> Iterator[bytes]:
        """Yield standard output in pieces; raise UnreachableError at the end if the exit code is not 0."""
        yield from self.stdout()
        if (code := self.code()) != 0:
            raise EndedEarly(self._name, code, self.stderr())

    def code(self) -> int:
        """Return the exit code, after standard output has ended. Raises UnreachableError if none came, or not all of the
        output."""
        if not self._own_stdout.ended:
            self._exit_code()
        self._wait_for_stderr(_BESIDE_S)
        if self._feeding is not None and self._own_stdout.ended and not self._request.is_last:
            self._feeding.join(self._silence_s)  # the shell read all of it before the command began
        if self._feed_error is not None:
            raise self._feed_error
        if self._own_stdout.code is None:
            raise self._cut()
        return self._own_stdout.code

    def _wait_for_stderr(self, beside_s: float = 0.0) -> None:
        """Wait until all of standard error is here. If it is joined to standard output, only the end of the channel shows that,
        after `beside_s`."""
        ended_at = self._clock()
        self._channel.settimeout(_LOOK_S)
        while not self._stderr_over:
            self._receive_stderr()
            if self._clock() - ended_at >= beside_s and not self._channel_ended and not self._own_stderr.begun:
                self._end_channel()
            self._check_silence()

    def _exit_code(self) -> int:
        self._wait_for_stderr()
        if self._feed_error is not None:
            raise self._feed_error
        while not self._channel.status_event.wait(_LOOK_S):
            self._check_silence()
        if self._channel.exit_status < 0:
            raise self._cut()
        return self._channel.exit_status

    def stderr(self) -> bytes:
        """Return what the command printed on standard error, after it has ended."""
        return bytes(self._stderr)

    def close(self) -> None:
        """Close the channel, whatever state it is in."""
        with suppress(*self._lost):
            self._channel.close()

    def _feed(self, stdin: Stdin) -> None:
        pieces = (stdin,) if isinstance(stdin, bytes) else stdin
        try:
            for piece in pieces:
                if not self._send(piece):
                    return
        except Exception as error:  # noqa: BLE001  # the source of the bytes failed: raised by the call that waits for the code
            self._feed_error = error
            self.close()
            return
        self._end_input()

    def _end_input(self) -> None:
        self._input_ended = self._clock()
        if self._request.is_last:
            self._end_channel()

    def _end_channel(self) -> None:
        """Tell the shell that nothing follows."""
        self._channel_ended = True
        with suppress(*self._lost):  # the thread that waits for the output gets the same error
            self._channel.shutdown_write()

    def _send(self, piece: bytes) -> bool:
        """Send all of it; return False if the command has closed its input."""
        done = 0
        while done < len(piece):
            try:
                sent = self._channel.send(piece[done : done + _PACKET])
            except TimeoutError:
                if self._channel.status_event.is_set():
                    return False
                continue
            except self._lost:
                return False
            if sent == 0:
                return False
            done += sent
            self._sent += sent
            self._moved = self._clock()
        return True

    def _take_ready_stderr(self) -> None:
        """Read what is here of standard error, a limited amount, so that standard output is read as well."""
        for _ in range(_ERRORS_AT_ONCE):
            if self._stderr_over or not self._channel.recv_stderr_ready():
                return
            self._receive_stderr()

    def _receive_stderr(self) -> None:
        """Read some of standard error and keep its end. It is no sign of life: a command may print errors for ever."""
        own = self._own_stderr
        try:
            data = self._channel.recv_stderr(_PIECE)
        except TimeoutError:
            return
        except self._lost:
            data = b""
        self._stderr += own.take(data) if data else own.rest()
        del self._stderr[:-_STDERR_KEPT]
        self._stderr_over = not data or own.ended

    def _check_silence(self) -> None:
        if self._feed_error is not None:
            raise self._feed_error
        if not self._own_stdout.begun:
            self._check_beginning()
        if self._clock() - self._moved >= self._silence_s:
            raise self._too_late(f"nothing was heard from the command for {self._silence_s:g} s")
        self._check_whole()

    def _check_whole(self) -> None:
        """Check the time of the input, which PACE limits, and of the whole answer: twice the silence after that."""
        now, ended = self._clock(), self._input_ended
        if ended is None and now - self._started >= self._silence_s + self._sent / PACE:
            raise self._too_late(f"it took only {self._sent} bytes of its input in {now - self._started:.0f} s")
        if self._whole and ended is not None and now - ended >= 2 * self._silence_s:
            raise self._too_late(f"the command's answer is not complete after {2 * self._silence_s:g} s")

    def _too_late(self, why: str) -> Silent:
        return Silent(f"{self._name}: {why}", hint="the node may be overloaded or frozen: gpucourse status")

    def _check_beginning(self) -> None:
        """Check the login shell: it may print something and need a while, but neither without limit."""
        noise = max(self._own_stdout.noise_bytes, self._own_stderr.noise_bytes)
        if noise > MOST_NOISE:
            raise self._not_begun(f"printed more than {format_bytes(MOST_NOISE)}")
        if self._clock() - self._started < self._silence_s:
            return
        if noise:
            raise self._not_begun(f"printed {format_bytes(noise)} in {self._silence_s:g} s")
        raise self._not_begun(f"took more than {self._silence_s:g} s", Silent)

    def _not_begun(self, what: str, kind: type[UnreachableError] = UnreachableError) -> UnreachableError:
        words = " ".join(filter(None, (self._own_stdout.noise(), self._own_stderr.noise())))
        return kind(
            f"{self._name}: the login shell {what} before our command began; it printed: {words or 'nothing'}",
            hint="type ssh, that account, and the command true: it has to end at once, with code 0. See its ~/.bashrc",
        )

    def _cut(self) -> UnreachableError:
        return UnreachableError(
            f"{self._name}: the connection was cut before the command's exit code came",
            hint="gpucourse status shows which nodes are alive; what was started on the node keeps running",
        )

    @staticmethod
    def _thread(target: Callable[..., object], *args: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, name="ssh-exchange", daemon=True)
        thread.start()
        return thread
