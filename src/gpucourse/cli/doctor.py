"""doctor: everything that would stop the course."""

from __future__ import annotations

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import current
from gpucourse.errors import ExitCode


def doctor(json: JsonFlag = False) -> int:
    """Everything that would stop the course on this machine, each with the command that mends it."""
    from gpucourse.actions.doctor import doctor as act
    from gpucourse.ui.views.lab import doctor as view

    session = current()
    found = act(session.context)
    if json:
        session.face.document({"findings": found})
    session.face.show(view(found))
    return ExitCode.MISSING if any(one.state == "missing" for one in found) else ExitCode.DONE


COMMANDS = {"doctor": doctor}
