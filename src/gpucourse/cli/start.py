"""The command `start`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.change import show_change
from gpucourse.cli.flags import JsonFlag, PaidModule, gpu_option
from gpucourse.cli.session import session_of


def start(
    ctx: typer.Context,
    module: PaidModule,
    gpu: Annotated[str | None, gpu_option()] = None,
    over_budget: Annotated[bool, typer.Option("--yes-over-budget", help="Start it even if that exceeds the budget.")] = False,
    json: JsonFlag = False,
) -> int:
    """Bring a stopped lab back, with its new addresses."""
    from gpucourse.labs.target import find_clocked_target

    session = session_of(ctx)
    target = find_clocked_target(session.context, module, gpu)
    return show_change(session, lambda context: target.start(context, module, gpu=gpu, over_budget=over_budget), json=json)
