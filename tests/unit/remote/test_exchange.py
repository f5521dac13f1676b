"""One command on a scripted channel: which endings are results, and which are errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.remote.exchange import Exchange, Silent
from gpucourse.remote.login_shell import MAX_NOISE, Request
from tests.waiting import STUCK_S

Say = Callable[[], bytes]


class ScriptedChannel:
    """A channel whose streams come from two functions. It has ended with `code` from the start (None: it has not)."""

    def __init__(self, stdout: Say, stderr: Say, code: int | None) -> None:
        self.recv_stdout, self.recv_errors = stdout, stderr
        self.status_event = threading.Event()
        self.exit_status = -1 if code is None else code
        if code is not None:
            self.status_event.set()
        self.closed = False
        self.errors_ready = True

    def recv(self, _nbytes: int) -> bytes:
        return self.recv_stdout()

    def recv_stderr_ready(self) -> bool:
        return self.errors_ready

    def recv_stderr(self, _nbytes: int) -> bytes:
        return b"" if self.closed else self.recv_errors()

    def send(self, s: bytes) -> int:
        return len(s)

    def settimeout(self, timeout: float | None) -> None:
        """Ignore the timeout, because the functions decide when they return."""

    def shutdown_write(self) -> None:
        """Do nothing, because no command of these tests reads input."""

    def close(self) -> None:
        self.closed = True


def pieces(*data: bytes) -> Say:
    waiting = iter(data)
    return lambda: next(waiting, b"")


def outcome(
    stdout: Say,
    stderr: Say = bytes,
    code: int | None = 0,
    silence_s: float = STUCK_S,
    marks: Request | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> bytes:
    """Return the result of the command, with both streams one after the other."""
    channel = ScriptedChannel(stdout, stderr, code)
    exchange = Exchange("node7", cast("Any", channel), marks or Request("true"), silence_s, clock=clock)
    try:
        out = b"".join(exchange.stdout())
        exchange.code()
        return out + exchange.stderr()
    finally:
        exchange.close()


def test_exchange_returns_the_output_between_the_marks() -> None:
    marks = Request("true")
    stream = pieces(b"Hello you, 3 new mails" + marks.stdout + b'{"a": ', b"1}" + marks.end[:9], marks.end[9:] + b"000bye\n")
    banner = pieces(b"Authorized use only\n" + marks.stderr + b"own words", marks.end + b"000goodbye")
    assert outcome(stream, banner, marks=marks) == b'{"a": 1}own words'


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_exchange_gives_up_a_shell_that_prints_without_end(stream: str) -> None:
    byte_count = 0

    def endless() -> bytes:
        nonlocal byte_count
        byte_count += 10_000
        time.sleep(0.0001)
        return b"y\n" * 5000

    def silent() -> bytes:
        time.sleep(0.01)
        raise TimeoutError

    streams = (endless, bytes) if stream == "stdout" else (silent, endless)
    with pytest.raises(UnreachableError, match=r"printed more than 1\.0 MiB before our command began") as caught:
        outcome(*streams, code=None, silence_s=60.0)
    assert len(caught.value.what) < 800
    assert byte_count < 100 * MAX_NOISE


def test_answer_gives_up_a_command_that_prints_without_end() -> None:
    request, now = Request("yes"), 0.0

    def talk() -> bytes:
        nonlocal now
        now += 50
        return b"y" if now > 50 else request.stdout

    exchange = Exchange("node7", cast("Any", ScriptedChannel(talk, bytes, None)), request, 60.0, clock=lambda: now)
    with pytest.raises(Silent, match="the command's answer is not complete after 120 s"):
        exchange.answer()
    assert now == 150


def test_exchange_is_silent_only_after_a_pause() -> None:
    marks, now = Request("true"), 0.0

    def talk(words: Iterator[bytes]) -> bytes:
        nonlocal now
        now += 50
        if word := next(words, b""):
            return word
        raise TimeoutError

    stream = iter([marks.stdout, b"one", b"two", b"three", marks.end + b"000"])
    quiet = pieces(marks.stderr + marks.end + b"000")
    assert outcome(lambda: talk(stream), quiet, marks=marks, silence_s=60.0, clock=lambda: now) == b"onetwothree"
    stops, quiet = iter([marks.stdout, b"one"]), pieces(marks.stderr + marks.end + b"000")
    with pytest.raises(Silent, match="the command sent nothing for 60 s"):
        outcome(lambda: talk(stops), quiet, code=None, marks=marks, silence_s=60.0, clock=lambda: now)
