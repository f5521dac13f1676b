"""Code shared by the commands that change an existing lab: stop, start, extend, allow-ip, keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.results import ChangeResult


def show_change(session: Session, act: Callable[[Context], ChangeResult], *, json: bool) -> int:
    """Change the lab with progress on the screen, and show its new state; return the exit code."""
    from gpucourse.ui.views.changed import change_result

    with session.console.watch() as live:
        result = act(session.context.watched_by(live))
    if json:
        session.console.document(result)
    session.console.show(change_result(result, session.find_step()))
    return ExitCode.DONE
