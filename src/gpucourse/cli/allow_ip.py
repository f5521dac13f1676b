"""The command `allow-ip`: admits this computer to a lab on AWS again after its address has changed."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.change import change_lab
from gpucourse.cli.flags import PaidModule, gpu_option
from gpucourse.cli.session import Session


def allow_ip(
    session: Session,
    module: PaidModule,
    cidr: Annotated[
        str, typer.Option("--ssh-cidr", help="The address, such as 203.0.113.7/32 (default: looked up online).")
    ] = "",
    gpu: Annotated[str | None, gpu_option()] = None,
) -> None:
    """Let this computer reach the lab after its address has changed."""
    change_lab(session, module, gpu, lambda target, context: target.allow_ip(context, module, cidr=cidr, gpu=gpu))
