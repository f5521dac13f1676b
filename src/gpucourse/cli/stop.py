"""The command `stop`."""

from __future__ import annotations

from gpucourse.cli.change import show_change
from gpucourse.cli.flags import GpuOption, JsonFlag, ModuleArgument
from gpucourse.cli.session import current


def stop(module: ModuleArgument, gpu: GpuOption = None, json: JsonFlag = False) -> int:
    """Pause a lab on AWS: its disks stay, and little else costs."""
    from gpucourse.labs.aws.stop_start import stop as act

    return show_change(lambda: act(current().context, module, gpu=gpu), json=json)
