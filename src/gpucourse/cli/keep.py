"""The command `keep`: keeps an idle lab on AWS for a while, without changing its deadline."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.change import change_lab
from gpucourse.cli.flags import PaidModule, gpu_option, parse_seconds
from gpucourse.cli.session import Session


def keep(
    session: Session,
    module: PaidModule,
    duration: Annotated[str, typer.Argument(help="For how long: 2h; 0 ends it.")] = "2h",
    gpu: Annotated[str | None, gpu_option()] = None,
) -> None:
    """Keep an idle lab on AWS; its deadline does not change."""
    seconds = parse_seconds(duration, f"gpucourse keep {module} 2h")
    change_lab(session, module, gpu, lambda target, context: target.keep(context, module, seconds, gpu=gpu))
