"""`stop`, `start`, `extend`, `keep`, `allow-ip`: passed on to the target of the lab, or refused with the reason."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.results import ChangeResult, Extension
from gpucourse.labs.target import HasClock, find_target, load_targets
from gpucourse.workspace import deployments


def stop(context: Context, module: str, *, gpu: str | None = None) -> ChangeResult:
    """Pause a lab: its disks stay, and little else costs. Raises UsageError, as all functions here, for a lab that cannot be
    paused."""
    return _find_clocked_target(context, module, gpu).stop(context, module, gpu=gpu)


def start(context: Context, module: str, *, gpu: str | None = None, over_budget: bool = False) -> ChangeResult:
    """Start a stopped lab, at its new addresses; `over_budget`: even if it costs more than is left."""
    return _find_clocked_target(context, module, gpu).start(context, module, gpu=gpu, over_budget=over_budget)


def more_time(context: Context, module: str, seconds: float, *, gpu: str | None = None) -> Extension:
    """Return what that many seconds more would mean. Changes nothing."""
    return _find_clocked_target(context, module, gpu).more_time(context, module, seconds, gpu=gpu)


def extend(context: Context, extension: Extension, *, over_budget: bool = False) -> ChangeResult:
    """Move the end of the lab; `over_budget`: even if it costs more than is left."""
    target = _find_clocked_target(context, extension.deployment.module, extension.deployment.gpu or None)
    return target.extend(context, extension, over_budget=over_budget)


def keep(context: Context, module: str, seconds: float, *, gpu: str | None = None) -> ChangeResult:
    """Prevent the end of an idle lab for this many seconds; 0 cancels that. The deadline stays."""
    return _find_clocked_target(context, module, gpu).keep(context, module, seconds, gpu=gpu)


def allow_ip(context: Context, module: str, *, cidr: str = "", gpu: str | None = None) -> ChangeResult:
    """Open SSH to this computer after its address changed."""
    return _find_clocked_target(context, module, gpu).allow_ip(context, module, cidr=cidr, gpu=gpu)


def _find_clocked_target(context: Context, module: str, gpu: str | None) -> HasClock:
    """Return the target of the lab that the command means: of those with a clock, the one whose lab was changed last.

    If no lab of the module is on record, return the first such target, which reports how to deploy one there. Raises UsageError
    if the module's labs are on targets without a clock.
    """
    wanted = context.catalog.module(module).id
    standing = deployments.of_module(context.paths, wanted)
    for lab in standing:
        if isinstance(target := find_target(lab.target), HasClock) and gpu in {None, lab.gpu}:
            return target
    clocked = [target for target in load_targets() if isinstance(target, HasClock)]
    if standing and not isinstance(target := find_target(standing[0].target), HasClock):
        what = f"{standing[0].stack} is not a lab on {' or '.join(able.label for able in clocked)}"
        raise UsageError(f"{what}: {target.no_clock}", hint=f"gpucourse destroy {wanted}")
    return clocked[0]
