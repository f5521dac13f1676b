"""Asks the person before something that costs money or cannot be undone."""

from __future__ import annotations

import sys

from gpucourse.cli.session import Session
from gpucourse.errors import UsageError


def confirm(session: Session, question: str, *, yes: bool, command: str, why: str = "") -> bool:
    """Whether the person agrees; `yes` answers for them, anything but yes is no.

    `command` is what they typed, for the hint, and `why` what there is to agree to, where the screen may not say it. Raises
    UsageError where nobody can be asked: no terminal, or --json.
    """
    if yes:
        return True
    if session.options.json or not sys.stdin.isatty() or not session.console.err.terminal:
        about = f"{why}: " if why else ""
        raise UsageError(f"{about}this needs a confirmation, and there is no terminal", hint=f"{command} --yes")
    return session.console.ask(question, sys.stdin)
