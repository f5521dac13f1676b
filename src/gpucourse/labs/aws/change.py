"""The result of a command that changed a lab, in the same form for all of these commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.labs.aws.account import on_aws
from gpucourse.labs.aws.budget import follow_account
from gpucourse.model.deployment import AwsDeployment
from gpucourse.workspace import deployments


@contextmanager
def lock_lab(context: Context, module: str, *, gpu: str | None, verb: str) -> Iterator[AwsDeployment]:
    """Lock the lab on AWS that the command means, and yield its record. Raises the errors of `on_aws`; StackBusy."""

    stack = on_aws(context, module, gpu=gpu, verb=verb).stack
    with context.lock(stack, f"{verb} {module}"):
        deployment = deployments.load_as(context.paths, stack, AwsDeployment)
        if deployment is None:  # another command was faster
            raise MissingError(f"{stack} was destroyed just now", hint=f"gpucourse deploy {module} --target aws")
        if deployment.cloud.reservation is not None:  # left by a command that was killed, since the lock was free
            with suppress(GpucourseError):  # the command itself reports what is wrong with the account
                follow_account(context, deployment)
        yield deployment
