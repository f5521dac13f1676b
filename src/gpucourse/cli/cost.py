"""The command `cost`: shows the costs so far, the costs to come, and the budget."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.session import Session


def cost(
    session: Session,
    billed: Annotated[
        bool, typer.Option("--billed", help="Also ask AWS what it has billed: each request costs $0.01.")
    ] = False,
) -> None:
    """Show what the course has cost and will cost, and the budget."""
    from gpucourse.labs.aws.cost import cost as act
    from gpucourse.ui.views.cost import cost as view

    if billed:
        session.console.note("asking Cost Explorer, which costs $0.01 per request")
    costs = act(session.look(), ask_aws=billed)
    session.present(view(costs), costs)
