"""Single keys from the terminal, read as they are pressed; the terminal is always left as it was."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpucourse.cli.session import Session

END = "\x04"  # Ctrl-D, and what is read where the terminal is gone


def can_read_keys(session: Session) -> bool:
    """Whether a person sits at a terminal that shows what this program says and takes single keys."""
    try:
        attached = sys.stdin.isatty() and os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):  # no standard input, or one that is not a file
        return False
    console = session.console
    return attached and not session.options.json and console.can_redraw(console.err) and console.can_redraw(console.out)


def read_key(seconds: float) -> str:
    """The key that is pressed within this time; empty if none is. Typed text that came before counts as keys."""
    with _single_keys() as keys:
        ready, _, _ = select.select([keys], [], [], seconds)
        data = os.read(keys, 1) if ready else b""
    if not ready:
        return ""
    return data.decode("ascii", "replace").lower() if data else END


def drop_keys() -> None:
    """Forget what was typed while something else was going on."""
    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def _single_keys() -> Iterator[int]:
    """Keys come at once and are not shown; Ctrl-C still interrupts. Whatever ends the block, all is as before."""
    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    try:
        tty.setcbreak(keys, termios.TCSANOW)
        yield keys
    finally:
        with suppress(termios.error):  # a terminal that is gone needs nothing
            termios.tcsetattr(keys, termios.TCSANOW, before)
