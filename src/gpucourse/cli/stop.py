"""The command `stop`: pauses a lab on AWS."""

from __future__ import annotations

from typing import Annotated

from gpucourse.cli.change import change_lab
from gpucourse.cli.flags import PaidModule, gpu_option
from gpucourse.cli.session import Session


def stop(session: Session, module: PaidModule, gpu: Annotated[str | None, gpu_option()] = None) -> None:
    """Pause a lab on AWS: you then pay for little more than its disks."""
    change_lab(session, module, gpu, lambda target, context: target.stop(context, module, gpu=gpu))
