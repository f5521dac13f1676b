"""The command `extend`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.change import show_change
from gpucourse.cli.flags import JsonFlag, PaidModule, gpu_option, parse_seconds
from gpucourse.cli.session import session_of
from gpucourse.errors import Interrupted


def extend(
    ctx: typer.Context,
    module: PaidModule,
    duration: Annotated[str, typer.Argument(help="How much longer: 2h, 90m.")],
    gpu: Annotated[str | None, gpu_option()] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation, even above the budget.")] = False,
    json: JsonFlag = False,
) -> int:
    """More time for a lab on AWS before it ends itself."""
    from gpucourse.labs.change import extend as act
    from gpucourse.labs.change import more_time
    from gpucourse.ui.views.changed import more_time as view

    session = session_of(ctx)
    extension = more_time(session.context, module, parse_seconds(duration, f"gpucourse extend {module} 2h"), gpu=gpu)
    if extension.above_budget:
        from gpucourse.cli.confirm import confirm

        command = f"gpucourse extend {module} {duration}"
        session.console.show(view(extension))
        if not confirm(session, "Spend more than the budget?", yes=yes, command=command):
            raise Interrupted("nothing was changed", hint="the budget is set in gpucourse.yaml (budget_usd)")
    return show_change(session, lambda: act(session.context, extension), json=json)
