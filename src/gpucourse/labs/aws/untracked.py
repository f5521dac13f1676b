"""Resources with this workspace's tag that are on no record: the record was lost, or the stack died before it had one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from gpucourse.aws import resource_scan
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.take_down import remove_all
from gpucourse.model.cloud import CloudResource
from gpucourse.model.deployment import Receipt
from gpucourse.model.event import stage
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, regions


def find_untracked(context: Context, module: str | None = None) -> list[CloudResource]:
    """Return every resource of this workspace (of one module) in the account that belongs to no deployment on record.

    Empty, without a request to AWS, if this workspace never built in a cloud. Raises the errors of `Account.call`.
    """
    where = regions.read_used_regions(context.paths)
    if not where:
        return []
    known = {deployment.uid for deployment in deployments.every(context.paths)}
    with stage(context.watch, "untracked", f"looking for resources that no record explains in {', '.join(where)}"):
        resources = resource_scan.find(Account(where[0], context.environ), course=context.workspace.id, regions=where)
    return [resource for resource in resources if _is_untracked(resource, known, module)]


def remove_untracked(context: Context, resources: list[CloudResource]) -> list[Receipt]:
    """Remove them, and return a receipt for each of their stacks; what still exists is in its leftovers.

    Raises the errors of `Account.call`.
    """
    account = Account(resources[0].region, context.environ)
    wanted = {(resource.kind, resource.id) for resource in resources}

    def look() -> list[CloudResource]:
        return [resource for resource in find_untracked(context) if (resource.kind, resource.id) in wanted]

    left = remove_all(context, account, "untracked", resources, look)
    return receipts(context, account, resources, left, regions.read_used_regions(context.paths))


def receipts(
    context: Context, account: Account, resources: list[CloudResource], left: list[CloudResource], where: Sequence[str]
) -> list[Receipt]:
    """Return a receipt for each stack of these resources; what still exists of it is in its leftovers."""
    stacks = sorted({resource.tags.get("Stack", "") for resource in [*resources, *left]})
    return [_receipt(context, account, uid, resources, left, where) for uid in stacks]


def _is_untracked(resource: CloudResource, known: Collection[str], module: str | None) -> bool:
    if not resource.seen:  # a kind that may not be listed may hide something
        return True
    return resource.tags.get("Stack", "") not in known and module in {None, resource.tags.get("Module")}


def _receipt(
    context: Context,
    account: Account,
    uid: str,
    resources: list[CloudResource],
    left: list[CloudResource],
    where: Sequence[str],
) -> Receipt:
    mine = [resource for resource in resources if resource.tags.get("Stack", "") == uid and resource.seen]
    still = [resource for resource in left if resource.tags.get("Stack", "") == uid]
    gone = {resource.id for resource in still}
    cost = ""
    with suppress(GpucourseError):  # the ledger may be lost as well
        if not still:
            ledger.close(context, account, uid)
        cost = f"{ledger.sum_costs(context, uid):.4f}"
    return Receipt(
        stack=uid or "without a stack",
        uid=uid,
        module=next((resource.tags["Module"] for resource in mine if "Module" in resource.tags), "?"),
        mode="aws",
        created="",
        destroyed=now_utc(),
        existed=[f"{resource.kind} {resource.id}" for resource in mine],
        removed=[f"{resource.kind} {resource.id}" for resource in mine if resource.id not in gone],
        swept=[f"{resource.kind} {resource.id} in {resource.region}" for resource in mine],
        leftovers=[resource.leftover for resource in still],
        regions=list(where),
        cost_usd=cost,
    )
