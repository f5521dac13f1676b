"""Asks the person before something that costs money or cannot be undone."""

from __future__ import annotations

import sys

from gpucourse.cli.session import Session
from gpucourse.errors import UsageError


def confirm(session: Session, question: str, *, yes: bool, command: str, why: str = "") -> bool:
    """Return whether the person agrees; `yes` answers for them, and any answer but yes means no.

    `command` is the typed command, for the hint, and `why` what the person must agree to, in case the screen does not show it.
    Raises UsageError if no person can answer: no terminal, or --json.
    """
    if yes:
        return True
    if session.options.json or not sys.stdin.isatty() or not session.console.err.terminal:
        about = f"{why}: " if why else ""
        raise UsageError(f"{about}this needs a confirmation, and there is no terminal", hint=f"{command} --yes")
    return session.console.ask(question, sys.stdin)
