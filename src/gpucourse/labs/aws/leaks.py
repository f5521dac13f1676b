"""`leaks`: find everything in the account that has the course's tag, in every region, whichever workspace created it.

`leaks` needs neither a record nor a workspace, so it works even after the disk that contained them was lost. `destroy`
searches only for resources with the tag of this workspace that no record lists. Such resources exist if a record was lost, or
if a stack failed before it had a record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from gpucourse.aws import resource_scan
from gpucourse.aws.kinds import FILE_SYSTEM, INSTANCE, VOLUME
from gpucourse.aws.money import find_charges, usd_per_hour
from gpucourse.aws.offerings import REGIONS
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.ledger import read_prices
from gpucourse.labs.aws.take_down import remove_all
from gpucourse.model.cloud import CloudResource
from gpucourse.model.deployment import Receipt
from gpucourse.model.event import stage
from gpucourse.storage import find_login
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, regions
from gpucourse.workspace.files import write_record
from gpucourse.workspace.paths import WorkspacePaths

Standing = Literal["standing", "leak", "another's", "unknown"]
_COSTING = {INSTANCE.name, VOLUME.name, FILE_SYSTEM.name}


@dataclass(frozen=True, kw_only=True)
class ScannedResource:
    """One resource in the account. Its state is one of these:

    `standing`: it belongs to a recorded lab.
    `another's`: another owner created it, and its deadline has not passed yet.
    `unknown`: AWS does not let us list resources of this kind.
    `leak`: all other cases.
    """

    resource: CloudResource
    state: Standing
    stack: str


@dataclass(frozen=True, kw_only=True)
class LeakScan:
    """The resources of the course in the account.

    `course`: the tag of this workspace.
    `usd_per_hour`: the cost of the leaks; None if unknown.
    `unasked`: why some regions could not be checked; empty if all were.
    """

    account: str
    course: str
    regions: tuple[str, ...]
    things: list[ScannedResource]
    usd_per_hour: Decimal | None
    unasked: str = ""

    @property
    def leaks(self) -> list[CloudResource]:
        """Return the resources that are leaks."""
        return [thing.resource for thing in self.things if thing.state == "leak"]

    @property
    def possible_leaks(self) -> list[CloudResource]:
        """Return the resources that may still be billed: the leaks, and the kinds that could not be checked."""
        return [thing.resource for thing in self.things if thing.state in {"leak", "unknown"}]


def scan_account(context: Context, *, everyone: bool = False) -> LeakScan:
    """Scan every region, and return the course's resources.

    With `everyone`, the labs of other owners count as leaks too. Raises the errors of `Account.call`.
    """
    account = Account(context.settings.region, context.environ)
    usual_regions = dict.fromkeys([context.settings.region, *REGIONS, *regions.read_used_regions(context.paths)])
    with stage(context.watch, "elsewhere", "searching every other region for the course's resources"):
        account_id = account.identity().account
        elsewhere, unasked = resource_scan.find_regions_in_use(account, known_regions=usual_regions)
    scanned_regions = (*usual_regions, *elsewhere)
    with stage(context.watch, "leaks", f"listing the course's resources in {', '.join(scanned_regions)}"):
        things = _classify(context, resource_scan.find(account, regions=scanned_regions), everyone=everyone)
        cost = _sum_costs(context.paths, account, things)
    return LeakScan(
        account=account_id,
        course=context.workspace.id,
        regions=scanned_regions,
        things=things,
        usd_per_hour=cost,
        unasked=unasked,
    )


def clean(context: Context, scan: LeakScan, *, everyone: bool = False) -> tuple[list[Receipt], list[CloudResource]]:
    """Remove the leaks; return receipts for the removed resources, and the resources that still exist.

    Raises the errors of `Account.call`.
    """
    account = Account(scan.regions[0], context.environ)

    def look() -> list[CloudResource]:
        return [
            thing.resource
            for thing in _classify(context, resource_scan.find(account, regions=scan.regions), everyone=everyone)
            if thing.state in {"leak", "unknown"}
        ]

    receipts, leftovers = _remove(context, account, "leaks", scan.leaks, look, scan.regions)
    for receipt in receipts:
        write_record(context.paths.receipt(time.strftime("%Y%m%d-%H%M%S"), receipt.stack.replace("/", "_")), receipt)
    return receipts, leftovers


def _classify(context: Context, resources: list[CloudResource], *, everyone: bool) -> list[ScannedResource]:
    """Return the resources with their classes. A stack counts as expired only when all its resources have expired.

    If `extend` was not allowed to change a tag, or an older gpucourse extended the lab, only the instances and their disks show
    the new end.
    """
    stacks_by_uid = {deployment.uid: deployment.stack for deployment in deployments.every(context.paths)}
    me = context.settings.owner or find_login()
    ends: dict[str, list[str]] = {}
    for resource in resources:
        ends.setdefault(resource.tags.get("Stack", ""), []).append(resource.tags.get("Expires", ""))
    expiry_by_uid = {uid: all(map(_is_expired, stamps)) for uid, stamps in ends.items()}
    things = []
    for resource in resources:
        uid, owner = resource.tags.get("Stack", ""), resource.tags.get("Owner", "")
        state: Standing
        if not resource.seen:
            state, uid = "unknown", ""
        elif uid in stacks_by_uid:
            state, uid = "standing", stacks_by_uid[uid]
        else:
            is_own = everyone or resource.tags.get("Course") == context.workspace.id or owner in {"", me}
            state = "leak" if is_own or expiry_by_uid[uid] else "another's"
        things.append(ScannedResource(resource=resource, state=state, stack=uid))
    return things


def _is_expired(expires: str) -> bool:
    """Return whether the end has passed. A text that is not a valid time counts as passed."""
    try:
        return datetime.fromisoformat(expires) <= ledger.now()
    except (ValueError, TypeError):
        return True


def _sum_costs(paths: WorkspacePaths, account: Account, things: list[ScannedResource]) -> Decimal | None:
    """Return the cost of the leaks in USD per hour.

    Return None if some resources could not be listed or priced, or if a leak that costs money belongs to no stack.
    """
    leaking = [thing for thing in things if thing.state == "leak"]
    if any(thing.state == "unknown" for thing in things) or any(
        not thing.stack and thing.resource.kind in _COSTING for thing in leaking
    ):
        return None
    total = Decimal(0)
    for region, uid in sorted({(thing.resource.region, thing.stack) for thing in leaking if thing.stack}):
        place = account.in_region(region)
        try:
            stack_charges = find_charges(place, read_prices(paths, region), stack=uid)
        except GpucourseError:
            return None
        total += usd_per_hour(stack_charges)
    return total


def find_untracked(context: Context, module: str | None = None) -> list[CloudResource]:
    """Return every resource in the account that belongs to this workspace (or to this module), but to no recorded deployment.

    If this workspace never built anything in a cloud, return an empty list without querying AWS. Raises the errors of
    `Account.call`.
    """
    used_regions = regions.read_used_regions(context.paths)
    if not used_regions:
        return []
    uids = {deployment.uid for deployment in deployments.every(context.paths)}
    with stage(context.watch, "untracked", f"looking in {', '.join(used_regions)} for resources that no record lists"):
        resources = resource_scan.find(
            Account(used_regions[0], context.environ), course=context.workspace.id, regions=used_regions
        )
    return [resource for resource in resources if _is_untracked(resource, uids, module)]


def remove_untracked(context: Context, resources: list[CloudResource]) -> list[Receipt]:
    """Remove these resources; return a receipt for each stack. Its leftovers are the resources that still exist.

    Raises the errors of `Account.call`.
    """
    account = Account(resources[0].region, context.environ)
    keys = {(resource.kind, resource.id) for resource in resources}

    def look() -> list[CloudResource]:
        return [resource for resource in find_untracked(context) if (resource.kind, resource.id) in keys]

    used_regions = regions.read_used_regions(context.paths)
    receipts, _leftovers = _remove(context, account, "untracked", resources, look, used_regions)
    return receipts


def _remove(
    context: Context,
    account: Account,
    name: str,
    resources: list[CloudResource],
    look: Callable[[], list[CloudResource]],
    scanned_regions: Sequence[str],
) -> tuple[list[Receipt], list[CloudResource]]:
    """Remove these resources; return a receipt for each stack, and the resources that still exist."""
    leftovers = remove_all(context, account, name, resources, look)
    uids = sorted({resource.tags.get("Stack", "") for resource in [*resources, *leftovers]})
    return [_make_receipt(context.paths, account, uid, resources, leftovers, scanned_regions) for uid in uids], leftovers


def _is_untracked(resource: CloudResource, uids: Collection[str], module: str | None) -> bool:
    if not resource.seen:  # resources of a kind that AWS does not let us list may exist
        return True
    return resource.tags.get("Stack", "") not in uids and module in {None, resource.tags.get("Module")}


def _make_receipt(
    paths: WorkspacePaths,
    account: Account,
    uid: str,
    resources: list[CloudResource],
    leftovers: list[CloudResource],
    scanned_regions: Sequence[str],
) -> Receipt:
    stack_resources = [resource for resource in resources if resource.tags.get("Stack", "") == uid and resource.seen]
    remaining = [resource for resource in leftovers if resource.tags.get("Stack", "") == uid]
    remaining_ids = {resource.id for resource in remaining}
    cost = ""
    with suppress(GpucourseError):  # the ledger may be lost as well
        if not remaining:
            ledger.settle(paths, account, uid, costing=())
        cost = f"{ledger.sum_costs(paths, uid):.4f}"
    return Receipt(
        stack=uid or "without a stack",
        uid=uid,
        module=next((resource.tags["Module"] for resource in stack_resources if "Module" in resource.tags), "?"),
        mode="aws",
        created="",
        destroyed=now_utc(),
        existed=[f"{resource.kind} {resource.id}" for resource in stack_resources],
        removed=[f"{resource.kind} {resource.id}" for resource in stack_resources if resource.id not in remaining_ids],
        swept=[f"{resource.kind} {resource.id} in {resource.region}" for resource in stack_resources],
        leftovers=[resource.leftover for resource in remaining],
        regions=list(scanned_regions),
        cost_usd=cost,
    )
