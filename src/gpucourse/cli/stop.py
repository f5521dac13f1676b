"""The command `stop`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.change import show_change
from gpucourse.cli.flags import JsonFlag, PaidModule, gpu_option
from gpucourse.cli.session import session_of


def stop(
    ctx: typer.Context, module: PaidModule, gpu: Annotated[str | None, gpu_option()] = None, json: JsonFlag = False
) -> int:
    """Pause a lab on AWS: you pay for little but its disks."""
    from gpucourse.labs.target import find_clocked_target

    session = session_of(ctx)
    target = find_clocked_target(session.context, module, gpu)
    return show_change(session, lambda context: target.stop(context, module, gpu=gpu), json=json)
