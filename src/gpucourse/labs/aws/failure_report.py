"""Reports after a failed build: which resources exist now, how much they cost, and how to take them down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from gpucourse.aws import failures, resource_scan
from gpucourse.aws.money import find_charges, usd_per_hour
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import (
    GpucourseError,
    InfrastructureError,
    Interrupted,
    TerraformFailed,
)
from gpucourse.labs import deploy
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.ledger import read_prices
from gpucourse.model.cloud import Failure
from gpucourse.model.deployment import AwsDeployment, PlacementAttempt
from gpucourse.provision.state import addresses
from gpucourse.workspace.paths import WorkspacePaths


@contextmanager
def record_outcome(context: Context, deployment: AwsDeployment, command: str) -> Iterator[None]:
    """Record the deployment before anything is created, and its outcome after the block, even if the block fails.

    The message of an error raised in the block is extended: it also says which resources exist, how much they cost, and how to
    take them down. `command` is the command that was typed; if nothing was built, the hint repeats it.
    """
    try:
        with deploy.record_outcome(context.paths, deployment):
            yield
    except Interrupted as error:
        continue_command = f"gpucourse deploy {deployment.module} --target aws --gpu {deployment.cloud.gpu}"
        raise Interrupted(
            f"deploying {deployment.stack} was interrupted. {describe_existing(context, deployment)}",
            hint=f"{continue_command if _exists(context.paths, deployment) else command} continues; "
            f"{_format_destroy(deployment)} takes it down",
        ) from error
    except GpucourseError as error:
        error.what = f"{error.what}\n{describe_existing(context, deployment)}"
        error.hint = "\n".join(filter(None, (error.hint, f"take it down: {_format_destroy(deployment)}")))
        raise


def describe_existing(context: Context, deployment: AwsDeployment) -> str:
    """Query the account and update the ledger. Return a sentence that says which parts of the lab exist and how much they
    cost."""
    cloud = deployment.cloud
    account = Account(cloud.region, context.environ)
    try:
        resources = [resource for resource in resource_scan.find(account, stack=deployment.uid) if resource.seen]
        costing = find_charges(account, read_prices(context.paths, cloud.region), stack=deployment.uid)
    except GpucourseError as error:
        return f"Its resources in {cloud.region} cannot be looked up now ({error.what}); they may cost money"
    with suppress(GpucourseError):  # the sentence matters more, and the next command updates the ledger
        ledger.settle(context.paths, account, deployment.uid, expires=cloud.expires, costing=costing)
    if not resources:
        return "No part of it exists in the account, so it costs nothing"
    rate = usd_per_hour(costing)
    kinds = [resource.kind for resource in resources]
    machines = kinds.count("instance")
    instance_clause = f", {machines} of them instance{'' if machines == 1 else 's'}" if machines else ", no instance among them"
    things = f"{len(resources)} resource{' exists' if len(resources) == 1 else 's exist'}"
    return f"{things} in {cloud.zone}{instance_clause}: together ${rate:.2f} an hour"


def make_error(failure: Failure, attempts: Sequence[PlacementAttempt], error: TerraformFailed) -> GpucourseError:
    """Return the error for a failure that no other zone or type can avoid, worded as in the failure table."""
    problem = failures.sentence(failure)
    if len(attempts) > 1:
        places = "; ".join(f"{attempt.instance_type} in {attempt.zone}: {attempt.code}" for attempt in attempts)
        problem = f"{problem}\nTried {len(attempts)} times: {places}"
    translated = failures.make_error(failure, problem)
    translated.log = error.log
    return translated


def _format_destroy(deployment: AwsDeployment) -> str:
    """Return the command that takes the lab down."""
    return f"gpucourse destroy {deployment.module} --gpu {deployment.cloud.gpu}"


def _exists(paths: WorkspacePaths, deployment: AwsDeployment) -> bool:
    """Return whether something was built, according to Terraform's state. The next deploy uses the same rule."""
    try:
        return bool(addresses(paths.stack(deployment.stack).state))
    except InfrastructureError:  # the state is damaged, so something was built
        return True
