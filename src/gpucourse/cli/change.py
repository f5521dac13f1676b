"""Code shared by the commands that change an existing lab: stop, start, extend, allow-ip, keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.session import Session

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.results import ChangeResult
    from gpucourse.labs.target import HasClock


def change_lab(session: Session, module: str, gpu: str | None, act: Callable[[HasClock, Context], ChangeResult]) -> None:
    """Change the module's lab by calling a method of its target, with progress on the screen, then show the lab's new state."""
    from gpucourse.labs.target import find_clocked_target
    from gpucourse.ui.views.changed import change_result

    context = session.look()
    target = find_clocked_target(context, module, gpu)
    with session.console.watch() as live:
        result = act(target, context.watched_by(live))
    session.present(change_result(result, session.find_step()), result)
