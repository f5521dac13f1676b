"""Code shared by the commands that change an existing lab: stop, start, extend, allow-ip, keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.session import Session

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.results import ChangeResult


def show_change(session: Session, act: Callable[[Context], ChangeResult]) -> None:
    """Change the lab with progress on the screen, and show its new state."""
    from gpucourse.ui.views.changed import change_result

    with session.console.watch() as live:
        result = act(session.context.watched_by(live))
    session.present(change_result(result, session.find_step()), result)
