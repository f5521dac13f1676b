"""`extend` and `keep`: give a lab more time, and pause its idle agents.

`extend` changes the tags first, then the deadlines on the nodes, and the backstop last. Even after a killed command, the tags
therefore show the latest possible end of the lab. If a node does not accept the new deadline, all changes are undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.aws import resource_scan, schedule, tags
from gpucourse.aws.money import usd_over
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted, MissingError, UnreachableError, UsageError
from gpucourse.labs.aws import ledger, node_files
from gpucourse.labs.aws.account import account_of, find_lab
from gpucourse.labs.aws.budget import follow_account, follow_killed_commands, read_budget, reserve
from gpucourse.labs.aws.change import lock_lab, make_result
from gpucourse.labs.results import ChangeResult, Extension
from gpucourse.limits import MAX_LAB_HOURS
from gpucourse.model.deployment import AwsDeployment
from gpucourse.model.event import stage
from gpucourse.model.node import Node
from gpucourse.ports import Transport
from gpucourse.workspace import deployments

if TYPE_CHECKING:
    from gpucourse.ports import Link

MAX_LAB_TIME = timedelta(hours=MAX_LAB_HOURS)
Failures = dict[str, GpucourseError]  # the error of each node that failed, by its name


def more_time(context: Context, module: str, seconds: float, *, gpu: str | None = None) -> Extension:
    """Return the new end and the cost of the lab if it gets this many more seconds. The lab itself is not changed.

    Records of labs whose last command was killed are updated. Raises UsageError if no time is added, or if the lab would exist
    for more than MAX_LAB_HOURS in total.
    """
    if seconds < 60:
        raise UsageError("an extension must be at least one minute", hint=f"gpucourse extend {module} 2h")
    follow_killed_commands(context)
    deployment = find_lab(context, module, gpu=gpu, verb="extend")
    seconds = min(seconds, 10 * MAX_LAB_TIME.total_seconds())  # refused below, with the right value
    former_end, at = datetime.fromisoformat(deployment.cloud.expires), ledger.now()
    expires = max(former_end, at) + timedelta(seconds=seconds)
    latest = datetime.fromisoformat(deployment.created) + MAX_LAB_TIME
    if expires > latest:
        room = max(0.0, (latest - max(former_end, at)).total_seconds() / 3600)
        raise UsageError(
            f"{deployment.stack} would exist more than {MAX_LAB_HOURS:.0f} hours after it was built: "
            f"its latest end is {latest:%Y-%m-%d %H:%M} UTC",
            hint=f"at most: gpucourse extend {module} {int(room)}h"
            if room >= 1
            else f"destroy it now, and deploy it again when you continue: gpucourse destroy {module}",
        )
    rate = ledger.per_hour(context.paths, deployment)
    budget = read_budget(context, {deployment.stack})
    return Extension(
        deployment=deployment,
        before=former_end,
        expires=expires,
        usd_per_hour=rate,
        usd_added=usd_over(rate or Decimal(0), max(timedelta(), expires - max(former_end, at))),
        usd_to_end=usd_over(rate or Decimal(0), max(timedelta(), expires - at)),
        left=budget.remaining,
        command=f"gpucourse extend {module} {seconds / 60:.0f}m{f' --gpu {gpu}' if gpu else ''}",
    )


def extend(context: Context, extension: Extension, *, over_budget: bool = False) -> ChangeResult:
    """Move the end of the lab: in the deadlines on the nodes, the backstop, the tags and the record. Return the changes.

    Raises UsageError if the cost up to the new end exceeds the budget, unless `over_budget`. Raises UnreachableError if a node
    does not accept the new end. The earlier end then applies, and the command can be repeated.
    """
    module, gpu = extension.deployment.module, extension.deployment.gpu
    with lock_lab(context, module, gpu=gpu, verb="extend") as deployment:
        account = account_of(context.environ, deployment)
        with reserve(
            context,
            deployment,
            per_hour=ledger.per_hour(context.paths, deployment) or Decimal(0),
            until=extension.expires,
            remedy="extend it by less",
            command=extension.command,
            over_budget=over_budget,
        ):
            try:
                return _move_end(context, account, deployment, extension)
            except KeyboardInterrupt:
                if booked := deployment.cloud.reservation:
                    deployment.cloud.reservation = replace(booked)  # kept, unless the account shows the result
                with suppress(GpucourseError):
                    follow_account(context, deployment)
                raise _make_interrupted_error(deployment, extension) from None


def keep(context: Context, module: str, seconds: float, *, gpu: str | None = None) -> ChangeResult:
    """Pause the idle agent on every node for this many seconds, or resume it if `seconds` is 0.

    Return the changes. The deadline stays as it is.

    Raises UnreachableError with the names of the nodes that did not accept the pause, MissingError for a stopped lab.
    """
    if seconds > MAX_LAB_TIME.total_seconds():
        raise UsageError(f"no lab may exist for more than {MAX_LAB_HOURS:.0f} hours", hint=f"gpucourse keep {module} 2h")
    with lock_lab(context, module, gpu=gpu, verb="keep") as deployment:
        cloud = deployment.cloud
        if cloud.stopped:
            raise MissingError(
                f"{deployment.stack} is stopped, so its idle agents do not run", hint=f"gpucourse start {module}"
            )
        until = ledger.now() + timedelta(seconds=seconds)
        with stage(context.watch, "hold", "updating the idle agents"):
            if seconds:
                failures = _do_on_nodes(
                    context.transport, deployment, lambda link: node_files.write(link, "hold", f"{until.timestamp():.0f}")
                )
            else:
                failures = _do_on_nodes(context.transport, deployment, lambda link: node_files.remove(link, "hold"))
        if failures:
            raise _combine_failures(failures, f"not every node of {deployment.stack} accepted the change: {_join(failures)}")
        deadline = datetime.fromisoformat(cloud.expires)
        sentence = (
            f"the idle agents leave it alone until {until:%Y-%m-%d %H:%M} UTC"
            if seconds
            else "the agents that end an idle lab watch it again"
        )
        title = f"{deployment.stack} is kept" if seconds else f"{deployment.stack} is no longer kept"
        warning = f"its deadline comes first, at {deadline:%Y-%m-%d %H:%M} UTC: gpucourse extend {module} 2h"
        return make_result(context, deployment, title, [sentence], warnings=[warning] if until > deadline else [])


def write_deadline(
    transport: Transport, deployment: AwsDeployment, moment: datetime, nodes: Sequence[Node] | None = None
) -> Failures:
    """Write the deadline to these nodes, by default to all; return the errors of the nodes that did not accept it."""
    text = f"{moment.timestamp():.0f}"
    return _do_on_nodes(transport, deployment, lambda link: node_files.write(link, "deadline", text), nodes)


def _move_end(context: Context, account: Account, deployment: AwsDeployment, extension: Extension) -> ChangeResult:
    """Write the new end to the tags, the nodes, the backstop and finally the record, and return the changes.

    If a node fails, undo the changes and raise the nodes' errors.
    """
    cloud = deployment.cloud
    with stage(context.watch, "deadline", "updating the tags and the deadlines on the nodes"):
        warnings = _write_tags(account, deployment, extension.expires)
        if not cloud.stopped and (failures := write_deadline(context.transport, deployment, extension.expires)):
            reset_failures = _set_back(context.transport, account, deployment, extension, failures)
            raise _make_extend_error(deployment, extension, failures, reset_failures)
    with stage(context.watch, "backstop", "moving the backstop"):
        finding = schedule.move(account, extension.expires, stack=deployment.uid)
        if finding.state != "ok" and not cloud.backstop:
            backstop_at = extension.before + schedule.AFTER
            warnings.append(f"AWS may still end it at {backstop_at:%Y-%m-%d %H:%M} UTC: {finding.detail}")
    cloud.expires = extension.expires.isoformat(timespec="seconds")
    deployments.save(context.paths, deployment)
    return make_result(
        context,
        deployment,
        f"{deployment.stack} has more time",
        [
            f"it ends at {extension.expires:%Y-%m-%d %H:%M} UTC instead of {extension.before:%H:%M}",
            "the backstop outside the nodes ends it ten minutes later"
            if finding.state == "ok"
            else "there is no backstop outside the nodes",
            f"this costs about ${extension.usd_added:.2f} more: ${extension.usd_to_end:.2f} from now until its end",
        ],
        warnings=warnings,
    )


def _write_tags(account: Account, deployment: AwsDeployment, moment: datetime) -> list[str]:
    """Write the lab's new deadline to every resource that has a deadline tag. Return a warning if some tags could not be
    changed."""
    try:
        tags.retag_expires(account, resource_scan.find(account, stack=deployment.uid), moment)
        schedule.retag_expires(account, moment, stack=deployment.uid)
    except GpucourseError as error:
        return [f"some tags still show the old deadline, which has no effect: {error.what}"]
    return []


def _set_back(
    transport: Transport, account: Account, deployment: AwsDeployment, extension: Extension, failures: Failures
) -> Failures:
    """Restore the earlier end on the nodes that accepted the later end. If all of these nodes accept it, also restore it in the
    tags.

    Return an error for each node that still has the later end.
    """
    updated_nodes = [node for node in deployment.nodes if node.name not in failures]
    reset_failures = write_deadline(transport, deployment, extension.before, updated_nodes)
    if not reset_failures:
        _write_tags(account, deployment, extension.before)
    return reset_failures


def _do_on_nodes(
    transport: Transport, deployment: AwsDeployment, task: Callable[[Link], None], nodes: Sequence[Node] | None = None
) -> Failures:
    from gpucourse.remote.fleet import Fleet

    with Fleet(transport, deployment.nodes if nodes is None else nodes) as fleet:
        outcomes = fleet.do_on_each(task)
    return {outcome.node.name: outcome.error for outcome in outcomes if outcome.error is not None}


def _make_extend_error(
    deployment: AwsDeployment, extension: Extension, failures: Failures, reset_failures: Failures
) -> GpucourseError:
    ends = f"still ends at {extension.before:%Y-%m-%d %H:%M} UTC"
    if not reset_failures:
        return _combine_failures(failures, f"{_join(failures)}. {deployment.stack} {ends}: nothing else was changed")
    return _combine_failures(
        failures,
        f"{_join(failures)}. {deployment.stack} {ends}, except {', '.join(reset_failures)}, which accepted the later end "
        f"and could not be set back: {_join(reset_failures)}",
    )


def _make_interrupted_error(deployment: AwsDeployment, extension: Extension) -> Interrupted:
    cloud = deployment.cloud
    ends = f"{datetime.fromisoformat(cloud.expires):%Y-%m-%d %H:%M} UTC"
    later_end = (
        f" ({datetime.fromisoformat(cloud.reservation.until):%H:%M} on nodes that accepted it)" if cloud.reservation else ""
    )
    return Interrupted(
        f"extending {deployment.stack} was interrupted; it ends at {ends}{later_end}",
        hint=f"type it again: {extension.command}; gpucourse status shows what will end it",
    )


def _join(failures: Failures) -> str:
    return "; ".join(error.what for error in failures.values())


def _combine_failures(failures: Failures, problem: str) -> GpucourseError:
    """Combine the errors into one with the message `problem`: an UnreachableError if any node was unreachable, otherwise an
    error of the first error's class."""
    errors = list(failures.values())
    first = next((error for error in errors if isinstance(error, UnreachableError)), errors[0])
    return type(first)(problem, hint=first.hint)
