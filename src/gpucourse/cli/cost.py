"""The command `cost`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def cost(
    ctx: typer.Context,
    billed: Annotated[
        bool, typer.Option("--billed", help="Also ask AWS what it has billed: each request costs $0.01.")
    ] = False,
    json: JsonFlag = False,
) -> int:
    """Show what the course cost and will cost, and what is left."""
    from gpucourse.labs.aws.cost import cost as act
    from gpucourse.ui.views.cost import cost as view

    session = session_of(ctx)
    if billed:
        session.console.note("asking Cost Explorer, which costs $0.01 a request")
    costs = act(session.context, ask_aws=billed)
    if json:
        session.console.document(costs)
    session.console.show(view(costs))
    return ExitCode.DONE
