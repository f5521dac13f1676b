"""Commands about a lab on AWS between its deploy and its destroy: stop, start, extend, allow-ip, keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from gpucourse.cli.flags import JsonFlag, ModuleArgument
from gpucourse.cli.session import current
from gpucourse.errors import ExitCode, Interrupted, UsageError
from gpucourse.units import parse_duration

if TYPE_CHECKING:
    from gpucourse.labs.aws.change import Changed

GpuOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--gpu", help="Which lab, where the module has several: t4, l4.", show_default=False),
]


def stop(module: ModuleArgument, gpu: GpuOption = None, json: JsonFlag = False) -> int:
    """Pause a lab on AWS: its disks stay, and little else costs."""
    from gpucourse.labs.aws.stop_start import stop as act

    return _done(lambda: act(current().context, module, gpu=gpu), json=json)


def start(module: ModuleArgument, gpu: GpuOption = None, json: JsonFlag = False) -> int:
    """Bring a stopped lab back, with its new addresses."""
    from gpucourse.labs.aws.stop_start import start as act

    return _done(lambda: act(current().context, module, gpu=gpu), json=json)


def extend(
    module: ModuleArgument,
    duration: Annotated[str, typer.Argument(help="How much longer: 2h, 90m.")],
    gpu: GpuOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, also above the budget.")] = False,
    json: JsonFlag = False,
) -> int:
    """More time for a lab on AWS before it ends itself."""
    from gpucourse.labs.aws.extend import extend as act
    from gpucourse.labs.aws.extend import more_time
    from gpucourse.ui.views.changed import more_time as view

    session = current()
    more = more_time(session.context, module, _seconds(duration, f"gpucourse extend {module} 2h"), gpu=gpu)
    if more.above_budget:
        from gpucourse.cli.confirm import confirmed

        command = f"gpucourse extend {module} {duration}"
        session.face.show(view(more))
        if not confirmed(session, "Spend more than the budget?", yes=yes, command=command):
            raise Interrupted("nothing was changed", hint="the budget stands in gpucourse.yaml (budget_usd)")
    return _done(lambda: act(session.context, more), json=json)


def allow_ip(
    module: ModuleArgument,
    cidr: Annotated[
        str, typer.Option("--ssh-cidr", help="The address, as 203.0.113.7/32; asked of the internet by default.")
    ] = "",
    gpu: GpuOption = None,
    json: JsonFlag = False,
) -> int:
    """Let this computer in after its address changed."""
    from gpucourse.labs.aws.allow_ip import allow_ip as act

    return _done(lambda: act(current().context, module, cidr=cidr, gpu=gpu), json=json)


def keep(
    module: ModuleArgument,
    duration: Annotated[str, typer.Argument(help="For how long: 2h; 0 ends it.")] = "2h",
    gpu: GpuOption = None,
    json: JsonFlag = False,
) -> int:
    """Keep a lab on AWS although nothing happens on it; the deadline stays."""
    from gpucourse.labs.aws.extend import keep as act

    seconds = _seconds(duration, f"gpucourse keep {module} 2h")
    return _done(lambda: act(current().context, module, seconds, gpu=gpu), json=json)


def _done(act: Callable[[], Changed], *, json: bool) -> int:
    from gpucourse.ui.views.changed import changed

    session = current()
    with session.face.watch() as live:
        session.context.watch = live
        result = act()
    if json:
        session.face.document(result)
    session.face.show(changed(result))
    return ExitCode.DONE


def _seconds(text: str, example: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(str(error), hint=example) from error


COMMANDS = {"stop": stop, "start": start, "extend": extend, "allow-ip": allow_ip, "keep": keep}
