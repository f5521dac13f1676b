"""Asking the person something at the terminal, line by line."""

from __future__ import annotations

import io
import sys
from contextlib import suppress

from gpucourse.cli.session import Session


def somebody_there(session: Session) -> bool:
    """Whether a person can be asked: standard input is a terminal, and no document is wanted."""
    return not session.options.json and sys.stdin.isatty()


def ask(session: Session, prompt: str) -> str | None:
    """The line that the person types, without white space around it; None where they ended the input (Ctrl-D)."""
    err = session.console.err
    err.write(prompt)
    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors == "strict":
        with suppress(io.UnsupportedOperation):  # something was read already
            sys.stdin.reconfigure(errors="surrogateescape")  # bytes that are not text are a slip, and asked for again
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        err.write("\n")
        raise
    if not line:
        err.write("\n")
    err.apart = False  # what was typed is above
    return line.strip() if line else None
