"""Single keys from the terminal, read as they are pressed; the state of the terminal is always restored."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpucourse.cli.session import Session

END = "\x04"  # Ctrl-D, and what is read if the terminal is gone


def can_read_keys(session: Session) -> bool:
    """Return whether the person has a terminal that shows the program's output and can send single keys."""
    try:
        attached = sys.stdin.isatty() and os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):  # no standard input, or one that is not a file
        return False
    console = session.console
    return attached and not session.options.json and console.can_redraw(console.err) and console.can_redraw(console.out)


def read_key(seconds: float) -> str:
    """Return the key that is pressed within this time; empty if none is. Text that was typed before counts as keys."""
    try:
        with _single_keys() as keys:
            ready, _, _ = select.select([keys], [], [], seconds)
            data = os.read(keys, 1) if ready else b""
    except termios.error:  # the terminal was closed before
        return END
    if not ready:
        return ""
    return data.decode("ascii", "replace").lower() if data else END


def drop_keys() -> None:
    """Discard the keys that were typed while the program was busy."""
    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def _single_keys() -> Iterator[int]:
    """Make the terminal send keys at once, without showing them; Ctrl-C still interrupts. The terminal is restored after the
    block."""
    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    try:
        tty.setcbreak(keys, termios.TCSANOW)
        yield keys
    finally:
        with suppress(termios.error):  # a closed terminal cannot be restored
            termios.tcsetattr(keys, termios.TCSANOW, before)
