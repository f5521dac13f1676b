"""The command `stop`."""

from __future__ import annotations

from typing import Annotated

from gpucourse.cli.change import show_change
from gpucourse.cli.flags import PaidModule, gpu_option
from gpucourse.cli.session import Session


def stop(session: Session, module: PaidModule, gpu: Annotated[str | None, gpu_option()] = None) -> None:
    """Pause a lab on AWS: you pay for little but its disks."""
    from gpucourse.labs.target import find_clocked_target

    target = find_clocked_target(session.context, module, gpu)
    show_change(session, lambda context: target.stop(context, module, gpu=gpu))
