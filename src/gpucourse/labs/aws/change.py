"""Change an existing lab: the command `allow-ip`, and the lock that every command holds while it changes a lab.

`allow-ip` opens SSH to this computer's new address, and closes it to the former one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from gpucourse.aws import ingress
from gpucourse.aws.caller import caller_cidr, validate_cidr
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.account import account_of, find_lab
from gpucourse.labs.aws.budget import follow_account
from gpucourse.labs.results import ChangeResult
from gpucourse.model.deployment import AwsDeployment
from gpucourse.model.event import stage
from gpucourse.workspace import deployments


@contextmanager
def lock_lab(context: Context, module: str, *, gpu: str | None, verb: str) -> Iterator[AwsDeployment]:
    """Lock the lab on AWS that the command refers to, and yield its record. Raises the errors of `find_lab`, and StackBusy."""

    stack = find_lab(context, module, gpu=gpu, verb=verb).stack
    with context.lock(stack, f"{verb} {module}"):
        deployment = deployments.load_as(context.paths, stack, AwsDeployment)
        if deployment is None:  # another command was faster
            raise MissingError(f"{stack} was destroyed just now", hint=f"gpucourse deploy {module} --target aws")
        if deployment.cloud.reservation is not None:  # left by a command that was killed, since the lock was free
            with suppress(GpucourseError):  # the command itself reports what is wrong with the account
                follow_account(context, deployment)
        yield deployment


def make_result(
    context: Context,
    deployment: AwsDeployment,
    title: str,
    changes: Sequence[str],
    *,
    warnings: Sequence[str] = (),
    next_command: str = "",
) -> ChangeResult:
    """Return the result of a change, with the lab's deadline, if something ends it then, and its cost per hour from now on."""
    cloud = deployment.cloud
    return ChangeResult(
        stack=deployment.stack,
        module=deployment.module,
        title=title,
        changed=list(changes),
        warnings=list(warnings),
        expires="" if cloud.stopped and cloud.backstop else cloud.expires,
        usd_per_hour=ledger.per_hour(context.paths, deployment),
        next=next_command,
    )


def allow_ip(context: Context, module: str, *, cidr: str = "", gpu: str | None = None) -> ChangeResult:
    """Open a lab's SSH port to `cidr` or, if that is empty, to the address in the settings or this computer's public address.

    Return the changes.

    Raises UsageError if the value is not one public address. Raises MissingError if the address cannot be found or the lab has
    no rule for SSH.
    """
    with lock_lab(context, module, gpu=gpu, verb="allow-ip") as deployment:
        setting = cidr or context.settings.ssh_cidr
        address_range = validate_cidr(setting) if setting else caller_cidr(context.environ)
        with stage(context.watch, "allow", f"opening SSH to {address_range}"):
            groups = ingress.allow(account_of(context.environ, deployment), address_range, stack=deployment.uid)
        deployment.cloud.ssh_cidr = address_range
        deployments.save(context.paths, deployment)
        return make_result(
            context,
            deployment,
            f"SSH to {deployment.stack} is open to {address_range}",
            groups or [f"{address_range} was already allowed"],
            next_command=f"gpucourse ssh {deployment.module}",
        )
