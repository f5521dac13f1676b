"""Take down a lab on AWS: first with Terraform, then by searching for its tags in every region that was ever used.

Terraform is never trusted: if it failed, was killed, or lost its state, the search by tag still finds everything. Resources
that a killed Terraform process created but did not record are also removed before a lab is built again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from gpucourse.aws import failures, instances, removal, resource_scan
from gpucourse.aws.kinds import (
    GATEWAY,
    INSTANCE,
    KEY_PAIR,
    PLACEMENT_GROUP,
    ROLE,
    ROUTE_TABLE,
    SCHEDULES,
    SECURITY_GROUP,
    SUBNET,
)
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import (
    CloudError,
    CredentialsError,
    GpucourseError,
    Interrupted,
    LeftoverError,
    PermissionRefused,
    StackBusy,
    StorageError,
    TerraformFailed,
)
from gpucourse.labs.aws import ledger, termination_reason
from gpucourse.labs.aws.account import check_account, make_pause
from gpucourse.labs.aws.lab import CloudLab, list_regions, open_cloud
from gpucourse.model.cloud import CloudInstance, CloudResource
from gpucourse.model.deployment import AwsDeployment, Receipt
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.provision import state
from gpucourse.workspace import deployments
from gpucourse.workspace.paths import WorkspacePaths

# The kinds that cost money, have a unique name or address range, or keep Terraform from removing the network.
BLOCKING = {kind.name for kind in (INSTANCE, KEY_PAIR, PLACEMENT_GROUP, SECURITY_GROUP, ROUTE_TABLE, SUBNET, GATEWAY)}
BACKSTOP = {SCHEDULES.name, ROLE.name}  # not Terraform's: they are removed last, when they have nothing left to end


def take_down(context: Context, deployment: AwsDeployment, receipt: Receipt) -> None:
    """Remove everything that belongs to this deployment. The receipt lists what existed, what was removed and what remains.

    Raises CredentialsError or CloudError if the account cannot be reached at the start; nothing has been changed in that case.
    Raises LeftoverError if the account becomes unreachable later, Interrupted, StackBusy.
    """
    account = Account(deployment.cloud.region, context.environ)
    receipt.regions = list_regions(context.paths, deployment)
    lab = _settle_terraform(context, deployment)
    existing = _look_first(context, account, deployment, receipt)
    receipt.existed = [_describe(resource) for resource in existing if resource.seen]
    with suppress(StorageError):  # a full disk must not keep a lab alive; the next destroy can use the unchanged record
        deployments.save(context.paths, deployment, "destroying")
    try:
        if lab is not None:
            destroy_with_terraform(context.watch, lab, existing)
        resources, leftovers = clear(context, account, deployment.uid, receipt.regions)
    except (KeyboardInterrupt, Interrupted) as error:
        raise Interrupted(
            f"destroying {deployment.stack} was interrupted; what is left of it still costs money",
            hint=f"gpucourse destroy {deployment.module} continues where this stopped",
        ) from error
    except StackBusy:
        raise
    except GpucourseError as error:
        _give_up(context.paths, deployment, existing, error)
    leftover_ids = {resource.id for resource in leftovers}
    receipt.removed = [_describe(resource) for resource in existing if resource.seen and resource.id not in leftover_ids]
    receipt.swept = [
        f"{resource.kind} {resource.id} in {resource.region}"
        for resource in resources
        if resource.seen and resource.kind not in BACKSTOP
    ]
    receipt.leftovers = [resource.leftover for resource in leftovers]
    _settle_costs(context, account, deployment, receipt)


def clear(context: Context, account: Account, uid: str, regions: list[str]) -> tuple[list[CloudResource], list[CloudResource]]:
    """Scan, remove the resources that are found, and scan again. Return the resources of the first scan and of the last scan.

    Raises the errors of `Account.call`.
    """
    with stage(context.watch, f"leak scan {uid}", f"looking for leftovers in {', '.join(regions)}"):
        resources = resource_scan.find(account, stack=uid, regions=regions)
    if not resources:
        return [], []
    return resources, remove_all(
        context, account, uid, resources, lambda: resource_scan.find(account, stack=uid, regions=regions)
    )


def remove_all(
    context: Context, account: Account, name: str, resources: list[CloudResource], look: Callable[[], list[CloudResource]]
) -> list[CloudResource]:
    """Remove these resources, then scan again. Return the resources that still exist, each with the reason if it is known.

    `name` labels the stages on the screen. Raises the errors of `Account.call`.
    """
    text = "removing the backstop" if all(resource.kind in BACKSTOP for resource in resources) else "removing what is left"
    with stage(context.watch, f"remove {name}", text):
        blocked = removal.remove(account, resources, context.watch, sleep=make_pause(context.stop))
    with stage(context.watch, f"look again {name}", "searching for leftovers again"):
        leftovers = look()
    notes = {(resource.kind, resource.id): resource.note for resource in blocked}
    return [replace(resource, note=resource.note or notes.get((resource.kind, resource.id), "")) for resource in leftovers]


def _settle_costs(context: Context, account: Account, deployment: AwsDeployment, receipt: Receipt) -> None:
    """Record the cost of the lab in the ledger and in the receipt. Leftovers stay in the ledger, since they still cost
    money."""
    cloud = deployment.cloud
    try:
        costing = None if receipt.leftovers else ()
        ledger.settle(context.paths, account, deployment.uid, expires=cloud.expires, costing=costing)
        receipt.cost_usd = f"{ledger.sum_costs(context.paths, deployment.uid):.4f}"
    except GpucourseError as error:  # an accounting error must not prevent removing what still costs money
        context.watch(Note(text=f"the ledger may be out of date: {error.what}", level="warning"))


def _look_first(context: Context, account: Account, deployment: AwsDeployment, receipt: Receipt) -> list[CloudResource]:
    """Return the existing resources before anything is touched. Record which nodes ended by themselves, and update the
    ledger."""
    cloud = deployment.cloud
    with stage(context.watch, f"look {deployment.stack}", f"looking at {deployment.stack} in {', '.join(receipt.regions)}"):
        try:
            check_account(account, deployment)
            resources = resource_scan.find(account, stack=deployment.uid, regions=receipt.regions)
            own_instances = _find_instances(account, deployment.uid)
        except (CredentialsError, CloudError) as error:
            error.what = f"{error.what}. {_describe_untouched(context.paths, deployment)}"
            error.hint = _advise_retry(error, deployment)
            raise
    receipt.ended = [
        termination_reason.describe_termination(instance, cloud.expires)
        for instance in termination_reason.select_lab_instances(deployment, own_instances)
        if not instance.alive
    ]
    ledger.settle_if_possible(context, account, deployment)
    return resources


def _settle_terraform(context: Context, deployment: AwsDeployment) -> CloudLab | None:
    """Wait until the Terraform process of a killed command has ended, so that a scan finds everything that it created.

    Return the lab, or None if Terraform cannot be used.
    """
    try:
        lab = open_cloud(context, deployment)
        lab.terraform.settle(context.watch)
    except (Interrupted, StackBusy):
        raise
    except GpucourseError as error:
        _report_failed_terraform(context.watch, error)
        return None
    return lab


def destroy_with_terraform(watch: Watcher, lab: CloudLab, existing: list[CloudResource]) -> None:
    """Let Terraform remove the resources in its state. If that fails, only report it: the search by tag finds the leftovers."""
    stack = lab.deployment.stack
    with stage(watch, f"destroy {stack}", f"taking down {stack}"):
        try:
            if lab.terraform.addresses():  # an instance that is not in Terraform's state would block the network's removal
                clear_unmanaged(watch, lab, existing)
            lab.terraform.down(watch)
        except (Interrupted, StackBusy):
            raise
        except GpucourseError as error:
            _report_failed_terraform(watch, error)


def _report_failed_terraform(watch: Watcher, error: GpucourseError) -> None:
    watch(Note(text=f"Terraform failed: {_shorten(error)}. Continuing without it, by searching for tags.", level="warning"))


def _give_up(
    paths: WorkspacePaths, deployment: AwsDeployment, existing: list[CloudResource], error: GpucourseError
) -> NoReturn:
    """Raise LeftoverError because AWS stopped answering. Only the resources that existed at the beginning are known."""
    seen_resources = [resource for resource in existing if resource.seen]
    ids = (
        ", ".join(resource.id for resource in seen_resources if resource.kind in {"instance", "file system", "volume"})
        or "no resource that costs money was found"
    )
    commands = "\n".join(resource.remove for resource in seen_resources)
    raise LeftoverError(
        f"{error.what}\nIt is not known what is left of {deployment.stack}{ledger.describe_cost_meanwhile(paths, deployment)}. "
        f"At the beginning: {ids}",
        hint=f"{_advise_retry(error, deployment)}" + (f"; by hand:\n{commands}" if commands else ""),
    ) from error


def _find_instances(account: Account, uid: str) -> list[CloudInstance]:
    try:
        return instances.find(account, stack=uid)
    except PermissionRefused:  # the leak scan reports it too, and its result counts
        return []


def _describe_untouched(paths: WorkspacePaths, deployment: AwsDeployment) -> str:
    ids = ledger.machines(paths, deployment.uid)
    machines = f": {', '.join(ids)}" if ids else ""
    return f"{deployment.stack} was left unchanged{ledger.describe_cost_meanwhile(paths, deployment)}{machines}"


def _advise_retry(error: GpucourseError, deployment: AwsDeployment) -> str:
    command = f"gpucourse destroy {deployment.module}"
    return f"{error.hint}; then: {command}" if error.hint else command


def _shorten(error: GpucourseError) -> str:
    """Return Terraform's error as one line, or the AWS error that it mentions."""
    if isinstance(error, TerraformFailed) and (failure := failures.from_text(f"{error.summary}\n{error.detail}")):
        return failures.sentence(failure)
    return error.what.split("\n")[0]


def _describe(resource: CloudResource) -> str:
    return f"{resource.kind} {resource.id}" + (f" ({resource.name})" if resource.name else "")


def clear_unmanaged(watch: Watcher, lab: CloudLab, existing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """Remove and return the resources that `find_unmanaged` finds. `destroy` handles those that cannot be removed.

    Raises the errors of `Account.call`.
    """
    resources = find_unmanaged(lab, existing)
    if resources:
        count = f"{len(resources)} resource{'s' if len(resources) > 1 else ''}"
        watch(Note(text=f"removing {count} that an interrupted attempt left", level="warning"))
        removal.remove(lab.account, resources, watch)
    return resources


def find_unmanaged(lab: CloudLab, existing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """Return the resources with this lab's tags that are not in Terraform's state.

    If the state is empty, return all resources. Otherwise, return only those that would block Terraform or the next attempt.
    Raises the errors of `Account.call`.

    `existing`: the result of a recent scan of the lab.
    """
    managed_ids = state.values(lab.paths.state)
    resources = lab.find_resources() if existing is None else existing
    return [
        resource
        for resource in resources
        if resource.seen and (not managed_ids or (resource.kind in BLOCKING and resource.id not in managed_ids))
    ]
