"""The command `extend`: moves the deadline of a lab on AWS."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.change import change_lab
from gpucourse.cli.flags import PaidModule, gpu_option, parse_seconds
from gpucourse.cli.session import Session


def extend(
    session: Session,
    module: PaidModule,
    duration: Annotated[str, typer.Argument(help="How much longer: 2h, 90m.")],
    gpu: Annotated[str | None, gpu_option()] = None,
    over_budget: Annotated[
        bool, typer.Option("--yes-over-budget", "--yes", "-y", help="Extend it even if that exceeds the budget.")
    ] = False,
) -> None:
    """Move the deadline of a lab on AWS to a later time."""
    from gpucourse.labs.target import find_clocked_target
    from gpucourse.ui.views.changed import more_time as view

    seconds = parse_seconds(duration, f"gpucourse extend {module} 2h")
    context = session.look()
    extension = find_clocked_target(context, module, gpu).more_time(context, module, seconds, gpu=gpu)
    if extension.above_budget:
        session.console.show(view(extension))
    change_lab(session, module, gpu, lambda target, context: target.extend(context, extension, over_budget=over_budget))
