"""The command `start`."""

from __future__ import annotations

from gpucourse.cli.change import show_change
from gpucourse.cli.flags import GpuOption, JsonFlag, ModuleArgument
from gpucourse.cli.session import current


def start(module: ModuleArgument, gpu: GpuOption = None, json: JsonFlag = False) -> int:
    """Bring a stopped lab back, with its new addresses."""
    from gpucourse.labs.aws.stop_start import start as act

    return show_change(lambda: act(current().context, module, gpu=gpu), json=json)
