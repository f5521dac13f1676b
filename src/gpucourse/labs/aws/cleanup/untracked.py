"""What carries this workspace's tag and no record explains: a record was lost, or a stack died before it had one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from gpucourse.aws import sweep
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws.cleanup.take_down import remove_all
from gpucourse.labs.aws.money import ledger
from gpucourse.model.cloud import Found
from gpucourse.model.deployment import Receipt
from gpucourse.model.event import stage
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, regions


def strays(context: Context, *, module: str | None = None) -> list[Found]:
    """Everything of this workspace (of one module) in the account that belongs to no deployment on record.

    Empty, and nothing asked, where this workspace never built in a cloud. Raises what a look raises.
    """
    where = regions.used(context.paths)
    if not where:
        return []
    known = {deployment.uid for deployment in deployments.every(context.paths)}
    with stage(context.watch, "strays", f"looking for what no record knows in {', '.join(where)}"):
        found = sweep.find(Account(where[0], context.environ), course=context.workspace.id, regions=where)
    return [one for one in found if _stray(one, known, module)]


def remove_strays(context: Context, found: list[Found]) -> list[Receipt]:
    """Remove them, and give a receipt for each stack that they were of; what is still there stands in its leftovers.

    Raises what a look raises.
    """
    account = Account(found[0].region, context.environ)
    wanted = {(one.kind, one.id) for one in found}

    def look() -> list[Found]:
        return [one for one in strays(context) if (one.kind, one.id) in wanted]

    left = remove_all(context, account, found, look)
    return receipts(context, account, found, left, regions.used(context.paths))


def receipts(context: Context, account: Account, found: list[Found], left: list[Found], where: Sequence[str]) -> list[Receipt]:
    """A receipt for each stack that something was found of; what of it is still there stands in its leftovers."""
    stacks = sorted({one.tags.get("Stack", "") for one in [*found, *left]})
    return [_receipt(context, account, uid, found, left, where) for uid in stacks]


def _stray(one: Found, known: Collection[str], module: str | None) -> bool:
    if not one.seen:  # what may not be looked at may hide something
        return True
    return one.tags.get("Stack", "") not in known and module in {None, one.tags.get("Module")}


def _receipt(
    context: Context, account: Account, uid: str, found: list[Found], left: list[Found], where: Sequence[str]
) -> Receipt:
    mine = [one for one in found if one.tags.get("Stack", "") == uid and one.seen]
    still = [one for one in left if one.tags.get("Stack", "") == uid]
    gone = {one.id for one in still}
    cost = ""
    with suppress(GpucourseError):  # the ledger may be lost as well
        if not still:
            ledger.close(context, account, uid)
        cost = f"{ledger.spent(context, uid):.4f}"
    return Receipt(
        stack=uid or "without a stack",
        uid=uid,
        module=next((one.tags["Module"] for one in mine if "Module" in one.tags), "?"),
        mode="aws",
        created="",
        destroyed=now_utc(),
        existed=[f"{one.kind} {one.id}" for one in mine],
        removed=[f"{one.kind} {one.id}" for one in mine if one.id not in gone],
        swept=[f"{one.kind} {one.id} in {one.region}" for one in mine],
        leftovers=[one.leftover for one in still],
        regions=list(where),
        cost_usd=cost,
    )
