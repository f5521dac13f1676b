"""One command on a channel that says what a test tells it to: what is a result, and what is an error with an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.remote.exchange import Exchange, last_words
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
        self.sent = b""
        self.input_ended = threading.Event()

    def recv(self, _nbytes: int) -> bytes:
        return self.recv_stdout()

    def recv_stderr(self, _nbytes: int) -> bytes:
        return b"" if self.closed else self.recv_errors()

    def send(self, s: bytes) -> int:
        self.sent += s
        return len(s)

    def settimeout(self, timeout: float | None) -> None:
        """Whatever the functions do."""

    def shutdown_write(self) -> None:
        self.input_ended.set()

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
    def drip() -> bytes:
        time.sleep(0.02)
        return b"."

    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"printed \d+ B in 0.3 s before our command began"):
        outcome(drip, code=None, silence_s=0.3)
    assert time.monotonic() - began < 3


def test_the_input_is_sent_once_the_command_has_begun() -> None:
    marks = Marks()
    sent_before: list[bytes] = []

    def in_turn() -> Iterator[bytes]:
        yield b"Hello"
        sent_before.append(channel.sent)
        yield marks.stdout
        assert channel.input_ended.wait(10)
        yield b"answer" + marks.end

    turns = in_turn()
    channel = ScriptedChannel(lambda: next(turns, b""), pieces(marks.stderr + marks.end), 0)
    exchange = Exchange("node7", channel, b"input", 10.0, marks=marks, lost=(OSError,))
    assert b"".join(exchange.stdout()) == b"answer"
    assert exchange.code() == 0
    assert (sent_before, channel.sent) == ([b""], b"input")


def test_a_shell_that_waits_for_input_gets_nothing_and_is_named() -> None:
    def silent() -> bytes:
        time.sleep(0.01)
        raise TimeoutError

    channel = ScriptedChannel(silent, silent, None)
    exchange = Exchange("node7", channel, b"input", 0.3, marks=Marks(), lost=(OSError,))
    with pytest.raises(UnreachableError) as caught:
        exchange.answer()
    exchange.close()
    assert caught.value.what == "node7: the login shell took more than 0.3 s before our command began; it printed: nothing"
    assert "~/.bashrc" in caught.value.hint
    assert channel.sent == b""


def test_of_a_traceback_only_the_last_line_is_told() -> None:
    long = b'Traceback (most recent call last):\n  File "agent.py", line 1\n' + b"    frame()\n" * 300
    assert last_words(long + b"ValueError: no JSON\n", 800) == "ValueError: no JSON"
    assert last_words(b"Traceback (most recent call last)\n" + b" " * 900, 800) == ""
    assert last_words(b"one\ntwo", 800) == r"one\ntwo"
