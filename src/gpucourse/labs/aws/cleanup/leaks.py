"""`leaks`: what the account holds with the course's tag, in every region, whoever made it.

It needs no record and no workspace: after a lost disk it still finds everything.
"""

from __future__ import annotations

import getpass
import time
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from gpucourse.aws import charges, everywhere, sweep
from gpucourse.aws.kinds import FILE_SYSTEM, INSTANCE, VOLUME
from gpucourse.aws.offerings import REGIONS
from gpucourse.aws.pricing import PriceBook
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws.cleanup.take_down import remove_all
from gpucourse.labs.aws.cleanup.untracked import receipts
from gpucourse.labs.aws.money import ledger
from gpucourse.model.cloud import Found
from gpucourse.model.deployment import Receipt
from gpucourse.model.event import stage
from gpucourse.workspace import deployments, regions
from gpucourse.workspace.files import write_record

Standing = Literal["standing", "leak", "another's", "unknown"]
_COSTING = {INSTANCE.name, VOLUME.name, FILE_SYSTEM}


@dataclass(frozen=True, kw_only=True)
class Held:
    """One thing in the account.

    `standing`: a lab on record explains it. `another's`: somebody else made it, and its time is not over: it will end by
    itself. `unknown`: a kind of things that AWS did not let us see. Everything else is a leak.
    """

    found: Found
    state: Standing
    stack: str


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """What the account holds of the course. `usd_per_hour` is what the leaks cost, None where that is not known; `course` is
    the tag of this workspace; `unasked`: why other regions than these may hold something, empty where none does."""

    account: str
    course: str
    regions: tuple[str, ...]
    things: list[Held]
    usd_per_hour: Decimal | None
    unasked: str = ""

    @property
    def leaks(self) -> list[Found]:
        """What nothing explains."""
        return [one.found for one in self.things if one.state == "leak"]

    @property
    def left(self) -> list[Found]:
        """What may still be billed: the leaks, and what could not be looked at."""
        return [one.found for one in self.things if one.state in {"leak", "unknown"}]


def holdings(context: Context, *, everyone: bool = False) -> Holdings:
    """Look everywhere. With `everyone` the labs of others count as leaks too. Raises what a look raises."""
    account = Account(context.settings.region, context.environ)
    known = dict.fromkeys([context.settings.region, *REGIONS, *regions.used(context.paths)])
    with stage(context.watch, "elsewhere", "looking for the course in every other region"):
        who = account.identity().account
        elsewhere, unasked = everywhere.holding(account, besides=known)
    where = (*known, *elsewhere)
    with stage(context.watch, "leaks", f"looking at everything in {', '.join(where)}"):
        things = _judged(context, sweep.find(account, regions=where), everyone=everyone)
        cost = _cost(account, things)
    return Holdings(account=who, course=context.workspace.id, regions=where, things=things, usd_per_hour=cost, unasked=unasked)


def clean(context: Context, held: Holdings, *, everyone: bool = False) -> tuple[list[Receipt], list[Found]]:
    """Remove the leaks: receipts of what went, and what is still there. Raises what a look raises."""
    account = Account(held.regions[0], context.environ)

    def look() -> list[Found]:
        return [
            one.found
            for one in _judged(context, sweep.find(account, regions=held.regions), everyone=everyone)
            if one.state in {"leak", "unknown"}
        ]

    left = remove_all(context, account, held.leaks, look)
    made = receipts(context, account, held.leaks, left, held.regions)
    for receipt in made:
        write_record(context.paths.receipt(time.strftime("%Y%m%d-%H%M%S"), receipt.stack.replace("/", "_")), receipt)
    return made, left


def _judged(context: Context, found: list[Found], *, everyone: bool) -> list[Held]:
    known = {deployment.uid: deployment.stack for deployment in deployments.every(context.paths)}
    me = context.settings.owner or getpass.getuser()
    ends: dict[str, list[str]] = {}
    for one in found:
        ends.setdefault(one.tags.get("Stack", ""), []).append(one.tags.get("Expires", ""))
    over = {uid: all(map(_over, stamps)) for uid, stamps in ends.items()}
    return [_one(context, one, known, "" if everyone else me, over=over[one.tags.get("Stack", "")]) for one in found]


def _one(context: Context, one: Found, known: dict[str, str], me: str, *, over: bool) -> Held:
    """`over`: the time of everything of its stack is over. More time is written on the instances and their disks alone, so
    what else belongs to a lab that was extended still tells the old end."""
    uid = one.tags.get("Stack", "")
    if not one.seen:
        return Held(found=one, state="unknown", stack="")
    if uid in known:
        return Held(found=one, state="standing", stack=known[uid])
    owner = one.tags.get("Owner", "")
    own = one.tags.get("Course") == context.workspace.id or owner in {"", me} or not me
    state: Standing = "leak" if own or over else "another's"
    return Held(found=one, state=state, stack=uid)


def _over(expires: str) -> bool:
    """Whether the end has passed; also where it is no time that can be read."""
    try:
        return datetime.fromisoformat(expires) <= ledger.now()
    except (ValueError, TypeError):
        return True


def _cost(account: Account, things: list[Held]) -> Decimal | None:
    """USD an hour of the leaks; None where a look at them is refused, or what costs is of no stack."""
    leaking = [one for one in things if one.state == "leak"]
    if any(one.state == "unknown" for one in things) or any(not one.stack and one.found.kind in _COSTING for one in leaking):
        return None
    total = Decimal(0)
    for region, uid in sorted({(one.found.region, one.stack) for one in leaking if one.stack}):
        place = account.in_region(region)
        try:
            found = charges.standing(place, PriceBook(region=region), stack=uid)
        except GpucourseError:
            return None
        total += sum((charge.units * charge.rate.usd_per_hour for charge in found), Decimal(0))
    return total
