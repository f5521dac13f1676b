"""Asking before something that costs, or that cannot be taken back."""

from __future__ import annotations

import sys

from gpucourse.cli.session import current
from gpucourse.errors import Interrupted, UsageError


def confirm(question: str, *, yes: bool, command: str) -> None:
    """Go on only with a yes: from `--yes` or from the person at the terminal.

    Raises UsageError where nobody can be asked (`command` is what to type then), Interrupted after a no.
    """
    if yes:
        return
    face = current().face
    if not sys.stdin.isatty() or not face.err.terminal:
        raise UsageError("this needs a yes, and there is no terminal to ask on", hint=f"{command} --yes")
    face.err.write(f"{question} [y/N] ")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Interrupted("nothing was changed")
