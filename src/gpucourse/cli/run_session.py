"""Run an exercise that opens a terminal on a node. Connect the learner's terminal to the node, keep a copy of its output, and
check afterwards that the GPU is free."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType

from gpucourse.cli.asking import set_terminal
from gpucourse.cli.outcome import present_run
from gpucourse.cli.session import Session
from gpucourse.errors import Interrupted, UsageError
from gpucourse.runs.resolve import ResolvedRun
from gpucourse.ui.text import clean
from gpucourse.workspace import runs

# A movement of the cursor, any other escape sequence, or a character.
_TOKEN = re.compile(
    r"\x1b\[(?P<count>\d*)(?P<move>[A-Za-z@])|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|.|\n", re.DOTALL
)

_PIECE = 1 << 16
MAX_OUTPUT = 64 << 20


def run_session(session: Session, run: ResolvedRun, *, detach: bool) -> int:
    """Open the session in this terminal, and return the exit code of its run."""
    from gpucourse.runs import slurm_session as act

    context = session.context
    if detach:
        raise UsageError(
            f"{run.exercise.id} opens a session in your own terminal, so it cannot run detached",
            hint=f"gpucourse run {run.exercise.id}, without --detach",
        )
    require_terminal(run.exercise.id)
    with ExitStack() as stack:
        with session.console.watch() as live:
            opened_session = stack.enter_context(act.open_session(context.watched_by(live), run))
        session.console.note("exit, or Ctrl-D, ends the session and frees the GPU. This is typed for you:")
        session.console.note(f"$ {opened_session.command_line}")
        terminal = run_in_terminal(opened_session.argv)
        transcript = f"$ {opened_session.command_line}\n{make_readable(terminal.output)}"
        if terminal.closed:  # nothing more can be shown, but the session still counts
            act.close_session(context, opened_session, transcript)
            raise Interrupted(
                f"the terminal of run {opened_session.record.id} was closed; its session has ended, and its record is complete",
                hint=f"gpucourse runs; the transcript: {runs.files_of(context.paths, opened_session.record).transcript}",
            )
        with session.console.watch() as live:
            followed_run = act.close_session(context.watched_by(live), opened_session, transcript)
    return present_run(session, followed_run, live)


def make_readable(data: bytes) -> str:
    """Return a terminal's output as text, with each line in its final form after typing, deleting and overwriting."""
    lines: list[str] = []
    line: list[str] = []
    at = 0
    for token in _TOKEN.finditer(data.decode("utf-8", "replace").replace("\r\n", "\n")):
        word, count = token[0], int(token["count"] or 1)
        if word == "\n":
            lines.append("".join(line))
            line, at = [], 0
        elif word == "\r":
            at = 0
        elif word == "\b" or token["move"] == "D":
            at = max(0, at - count)
        elif token["move"] == "C":
            at += count
        elif token["move"] == "K":
            del line[at:]
        elif token["move"] == "P":
            del line[at : at + count]
        elif token["move"] == "@":
            line[at:at] = " " * count
        elif len(word) == 1 and word != "\a":
            line += " " * (at - len(line))
            line[at : at + 1] = word
            at += 1
    return clean("\n".join([*lines, "".join(line)]))


def require_terminal(exercise: str) -> None:
    """Raise UsageError if there is no terminal in which the exercise could open its session."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            f"{exercise} opens a session in your own terminal, and there is none here",
            hint=f"type gpucourse run {exercise} in a terminal, without a pipe; --dry-run shows what it would do",
        )


@dataclass(frozen=True)
class TerminalResult:
    """The result of a program that used the terminal. `output` is its output, at most the last 64 MiB. `closed` is true if the
    terminal was closed, or this process received a signal to end, before the program ended."""

    output: bytes
    closed: bool


def run_in_terminal(words: Sequence[str]) -> TerminalResult:
    """Run a command in this terminal until it ends, and return its output. If this terminal is closed, the command ends as
    well."""
    child, master = pty.fork()
    if child == 0:
        os.execv(words[0], list(words))
    output = bytearray()
    is_closed = False
    try:
        with set_terminal(tty.setraw, termios.TCSAFLUSH), _follow_resizes(master):
            _follow_size(master)
            for data in _pump(master):
                output += data
                del output[: max(0, len(output) - MAX_OUTPUT)]
    except KeyboardInterrupt:
        is_closed = True
    os.close(master)
    os.waitpid(child, 0)
    return TerminalResult(bytes(output), is_closed)


def _pump(master: int) -> Iterator[bytes]:
    """Pass keys to the program, and show and yield its output, until it has ended."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    listening = [keys, master]
    while True:
        ready, _, _ = select.select(listening, [], [])
        if master in ready:
            try:
                data = os.read(master, _PIECE)
            except OSError:  # Linux raises this when the last program has left the terminal
                return
            if not data:
                return
            yield data
            try:
                _write(screen, data)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                raise KeyboardInterrupt from error  # the terminal is gone
        if keys in ready:
            keystrokes = os.read(keys, _PIECE)
            if keystrokes:
                _write(master, keystrokes)
            else:  # the terminal is gone
                listening.remove(keys)
                os.kill(os.getpid(), signal.SIGHUP)


def _write(target: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(target, remaining) :]


@contextmanager
def _follow_resizes(master: int) -> Iterator[None]:
    """Pass changes of the window's size to the program."""

    def handle_resize(_number: int, _frame: FrameType | None) -> None:
        _follow_size(master)

    previous = signal.signal(signal.SIGWINCH, handle_resize)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, previous)


def _follow_size(master: int) -> None:
    size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
    fcntl.ioctl(master, termios.TIOCSWINSZ, size)
