"""One command on a channel that says what a test tells it to: what is a result, and what is an error with an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.remote.exchange import Exchange
from gpucourse.remote.login_shell import MOST_NOISE, Marks

Say = Callable[[], bytes]


class ScriptedChannel:
    """A channel whose streams are what two functions give; it has ended with `code` from the start (None: it has not)."""

    def __init__(self, stdout: Say, stderr: Say, code: int | None) -> None:
        self.recv_stdout, self.recv_errors = stdout, stderr
        self.status_event = threading.Event()
        self.exit_status = -1 if code is None else code
        if code is not None:
            self.status_event.set()
        self.closed = False

    def recv(self, _nbytes: int) -> bytes:
        return self.recv_stdout()

    def recv_stderr(self, _nbytes: int) -> bytes:
        return b"" if self.closed else self.recv_errors()

    def send(self, s: bytes) -> int:
        return len(s)

    def settimeout(self, timeout: float | None) -> None:
        """Whatever the functions do."""

    def shutdown_write(self) -> None:
        """Nobody reads it."""

    def close(self) -> None:
        self.closed = True


def pieces(*data: bytes) -> Say:
    waiting = iter(data)
    return lambda: next(waiting, b"")


def outcome(
    stdout: Say, stderr: Say = bytes, code: int | None = 0, silence_s: float = 5.0, marks: Marks | None = None
) -> bytes:
    """What comes of the command, both streams one after the other."""
    channel = ScriptedChannel(stdout, stderr, code)
    exchange = Exchange("node7", channel, b"", silence_s, marks=marks or Marks(), lost=(OSError,))
    try:
        out = b"".join(exchange.stdout())
        exchange.code()
        return out + exchange.stderr()
    finally:
        exchange.close()


def test_the_output_between_the_marks_is_the_result() -> None:
    marks = Marks()
    said = pieces(b"Hello you, 3 new mails" + marks.stdout + b'{"a": ', b"1}" + marks.end[:9], marks.end[9:] + b"bye\n")
    banner = pieces(b"Authorized use only\n" + marks.stderr + b"own words", marks.end + b"goodbye")
    assert outcome(said, banner, marks=marks) == b'{"a": 1}own words'


def test_an_output_without_its_end_is_no_result() -> None:
    marks = Marks()
    with pytest.raises(UnreachableError, match="node7: the connection was cut"):
        outcome(pieces(marks.stdout + b'{"killed": 1'), pieces(marks.stderr), marks=marks)


def test_a_shell_that_ends_before_the_command_is_told_in_its_own_words() -> None:
    with pytest.raises(UnreachableError) as caught:
        outcome(pieces(b"This account is currently not available.\n"), code=1)
    assert caught.value.exit_code == 7
    assert caught.value.what == (
        "node7: the login shell ended with code 1 before our command began; "
        "it printed: This account is currently not available."
    )
    assert "~/.bashrc" in caught.value.hint


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_shell_that_prints_for_ever_is_left_after_a_megabyte(stream: str) -> None:
    given = 0

    def endless() -> bytes:
        nonlocal given
        given += 10_000
        time.sleep(0.0001)
        return b"y\n" * 5000

    def silent() -> bytes:
        time.sleep(0.01)
        raise TimeoutError

    streams = (endless, silent) if stream == "stdout" else (silent, endless)
    with pytest.raises(UnreachableError, match=r"printed more than 1\.0 MiB before our command began") as caught:
        outcome(*streams, code=None, silence_s=60.0)
    assert len(caught.value.what) < 800
    assert given < 100 * MOST_NOISE


def test_a_shell_that_prints_now_and_then_has_the_patience_for_silence() -> None:
    def dripping() -> bytes:
        time.sleep(0.02)
        return b"."

    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"printed \d+ B in 0.3 s before our command began"):
        outcome(dripping, code=None, silence_s=0.3)
    assert time.monotonic() - began < 3
