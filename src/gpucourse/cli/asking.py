"""Ask the person questions at the terminal, line by line."""

from __future__ import annotations

import io
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from gpucourse.cli.session import Session
from gpucourse.errors import UsageError


def can_answer(session: Session) -> bool:
    """Return whether a person can answer: standard input is a terminal, and the output is not a JSON document."""
    return not session.options.json and sys.stdin.isatty()


def ask(session: Session, prompt: str) -> str | None:
    """Return the line that the person types, without surrounding white space, or None if they ended the input (Ctrl-D)."""
    err = session.console.err
    err.write(prompt)
    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors == "strict":
        with suppress(io.UnsupportedOperation):  # some input has already been read
            sys.stdin.reconfigure(errors="surrogateescape")  # bytes that are not text are a typing error: ask again
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        err.write("\n")
        raise
    if not line:
        err.write("\n")
    err.apart = False  # the typed line is above
    return line.strip() if line else None


def ask_valid(session: Session, prompt: str, check: Callable[[str], object]) -> str | None:
    """Return the line that the person types, as `ask` does. If `check` raises ValueError for the line, show the reason and ask
    again. An empty line is not checked."""
    while line := ask(session, prompt):
        try:
            check(line)
        except ValueError as error:
            session.console.warn(str(error))
        else:
            return line
    return line


@contextmanager
def set_terminal(change: Callable[[int, int], object], action: int) -> Iterator[int]:
    """Change the terminal's mode for a block, and yield the terminal's file descriptor.

    `change` is `tty.setraw` or `tty.setcbreak`. `action` is a constant of `termios`: TCSAFLUSH discards keys that were typed
    earlier, and TCSANOW keeps them.
    """
    keys = sys.stdin.fileno()
    attributes = termios.tcgetattr(keys)
    try:
        change(keys, action)
        yield keys
    finally:
        with suppress(termios.error):  # a closed terminal cannot be restored
            termios.tcsetattr(keys, action, attributes)


def confirm(session: Session, question: str, *, yes: bool, command: str, reason: str = "") -> bool:
    """Ask the question and return whether the person agrees; any answer but yes means no. With `yes`, return True without
    asking.

    `command` is the typed command, for the hint. `reason` says what the person must agree to, if the screen does not show it.
    Raises UsageError if there is no terminal, or if --json was typed.
    """
    if yes:
        return True
    if session.options.json or not sys.stdin.isatty() or not session.console.err.terminal:
        about = f"{reason}: " if reason else ""
        raise UsageError(f"{about}this needs confirmation, and there is no terminal", hint=f"{command} --yes")
    return session.console.ask(question, sys.stdin)
