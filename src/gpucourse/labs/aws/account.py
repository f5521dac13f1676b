"""Connect to the account that contains a lab, and find the lab that a command refers to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from gpucourse.aws.session import Account, AwsIdentity
from gpucourse.context import Context
from gpucourse.errors import Interrupted, MissingError, UsageError
from gpucourse.model.deployment import AwsDeployment
from gpucourse.workspace import deployments


def account_of(environ: Mapping[str, str], deployment: AwsDeployment) -> Account:
    """Return the account that contains a lab, in the lab's region.

    Raises MissingError if the credentials belong to another account, in which the lab would seem to be gone. Raises the errors
    of `Account.call`.
    """
    cloud = deployment.cloud
    account = Account(cloud.region, environ)
    check_account(account, deployment)
    return account


def check_account(account: Account, deployment: AwsDeployment) -> None:
    """Check that the credentials belong to the lab's account. Raises MissingError if they do not."""
    if deployment.cloud.account:
        check_identity(account.identity(), deployment)


def check_identity(identity: AwsIdentity, deployment: AwsDeployment) -> None:
    """Check that this identity belongs to the lab's account. Raises MissingError if it does not."""
    account = deployment.cloud.account
    if account and account != identity.account:
        raise MissingError(
            f"{deployment.stack} is in the AWS account {account}, but these credentials belong to {identity.account}",
            hint="use the credentials that built it (AWS_PROFILE), or another workspace (--workspace DIR)",
        )


def make_pause(stop: threading.Event) -> Callable[[float], None]:
    """Return a function that waits for a number of seconds. The function raises Interrupted as soon as `stop` is set."""

    def pause(seconds: float) -> None:
        if stop.wait(seconds):
            raise Interrupted("stopped while waiting for AWS", hint="gpucourse status")

    return pause


def find_lab(context: Context, module: str, *, gpu: str | None = None, verb: str) -> AwsDeployment:
    """Return the lab of the module on AWS to which the command refers. `verb`: the command that was typed.

    Raises MissingError if there is no such lab, UsageError if several labs match.
    """
    module_id = context.catalog.module(module).id
    labs = deployments.list_of_module(context.paths, module_id)
    matches = [deployment for deployment in labs if isinstance(deployment, AwsDeployment) and gpu in {None, deployment.gpu}]
    if len(matches) > 1:
        stacks = ", ".join(deployment.stack for deployment in matches)
        gpus = " or ".join(f"--gpu {deployment.cloud.gpu}" for deployment in matches)
        raise UsageError(
            f"module {module_id} has several labs on AWS: {stacks}", hint=f"choose one: gpucourse {verb} {module_id} {gpus}"
        )
    if matches:
        return matches[0]
    suffix = f" with the GPU {gpu}" if gpu else ""
    raise MissingError(f"module {module_id} has no lab on AWS{suffix}", hint="gpucourse status shows every lab")
