"""The command `start`: starts a stopped lab on AWS again."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.change import change_lab
from gpucourse.cli.flags import PaidModule, gpu_option
from gpucourse.cli.session import Session


def start(
    session: Session,
    module: PaidModule,
    gpu: Annotated[str | None, gpu_option()] = None,
    over_budget: Annotated[bool, typer.Option("--yes-over-budget", help="Start it even if that exceeds the budget.")] = False,
) -> None:
    """Bring a stopped lab back, with its new addresses."""
    change_lab(session, module, gpu, lambda target, context: target.start(context, module, gpu=gpu, over_budget=over_budget))
