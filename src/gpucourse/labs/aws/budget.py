"""The learner's budget. Only this module enforces it, before `deploy`, `start` and `extend`.

The reservation of a killed command counts until the account shows the result: see `follow_account`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from gpucourse.aws import instances, schedule
from gpucourse.aws.money import usd_over
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, PermissionRefused, UsageError
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.account import account_of
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.deployment import AwsDeployment, Reservation
from gpucourse.model.event import Note
from gpucourse.units import parse_moment
from gpucourse.workspace import deployments
from gpucourse.workspace.lock import try_lock

LESS = "use a shorter --ttl, --spot or fewer --nodes"


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The learner's money, in USD.

    `budget`: the budget of the whole course; None if none was set.
    `reserved`: how much other labs will still cost until their deadlines.
    """

    budget: Decimal | None
    spent: Decimal
    reserved: Decimal = Decimal(0)

    @property
    def remaining(self) -> Decimal | None:
        """Return what may still be spent; None without a budget."""
        return None if self.budget is None else self.budget - self.spent - self.reserved

    def allows(self, usd: Decimal) -> bool:
        """Return whether this amount may still be spent; zero is always allowed."""
        return self.remaining is None or not usd or usd <= self.remaining

    def check(self, usd: Decimal, *, over_budget: bool, command: str, remedy: str = LESS) -> None:
        """Check that the remaining budget covers this amount. Raises UsageError if it does not, unless `over_budget`.

        `command`: the command that was typed.
        `remedy`: advice on how to lower the cost.
        """
        if over_budget or self.allows(usd):
            return
        remaining = max(self.remaining or Decimal(0), Decimal(0))
        reserves = f", after ${self.reserved:.2f} for other labs until their deadlines" if self.reserved else ""
        raise UsageError(
            f"this would cost ${usd:.2f} until it ends; ${remaining:.2f} of the budget of ${self.budget:.2f} is left{reserves}",
            hint=f"{remedy}; or go ahead anyway: {command} --yes-over-budget; the budget is set in gpucourse.yaml (budget_usd)",
        )


def read_budget(context: Context, stacks: Collection[str]) -> Budget:
    """Return the budget. The expected costs of all labs are reserved, except those of `stacks`."""
    budget = context.settings.budget_usd
    if budget is not None:
        follow_killed_commands(context)
    return Budget(
        budget=budget,
        spent=ledger.read(context.paths.ledger).total(ledger.now()),
        reserved=Decimal(0) if budget is None else ledger.sum_reserved(context.paths, without=stacks),
    )


@contextmanager
def reserve(
    context: Context,
    deployment: AwsDeployment,
    *,
    per_hour: Decimal,
    until: datetime,
    remedy: str,
    command: str,
    over_budget: bool,
) -> Iterator[None]:
    """Check the budget and record the future cost of the lab, under one lock. During the block, other commands see this cost.

    For `remedy`, `command` and `over_budget`, see `Budget.check`. Raises StackBusy, and UsageError if the lab costs more than
    is left.
    """
    usd = usd_over(per_hour, max(until - ledger.now(), ledger.NO_TIME))
    with context.lock("budget", command.removeprefix("gpucourse ")):
        read_budget(context, {deployment.stack}).check(usd, remedy=remedy, command=command, over_budget=over_budget)
        booked = Reservation(usd_per_hour=f"{per_hour:.4f}", until=until.isoformat(timespec="seconds"))
        deployment.cloud.reservation = booked
        deployments.save(context.paths, deployment, error=deployment.error)
    try:
        yield
    finally:
        if deployment.cloud.reservation is booked:  # otherwise the block has replaced it
            deployment.cloud.reservation = None
        deployments.save(context.paths, deployment, error=deployment.error)


def follow_killed_commands(context: Context) -> None:
    """Query the account about each lab whose last command was killed, and update the lab's record.

    If the account does not answer, the reservation of the command still counts, and a note says so.
    """
    for record in deployments.readable(context.paths)[0]:
        if not isinstance(record, AwsDeployment) or record.cloud.reservation is None:
            continue
        with try_lock(context.paths.lock(record.stack), "look at the budget") as free:
            lab = deployments.load_as(context.paths, record.stack, AwsDeployment) if free else None
            if lab is None or lab.cloud.reservation is None:  # a command is working on it, or was a moment ago
                continue
            try:
                follow_account(context, lab)
            except GpucourseError as error:
                text = f"the reservation of a killed command for {lab.stack} still counts: {error.what}"
                context.watch(Note(text=text, level="warning"))


def follow_account(context: Context, deployment: AwsDeployment) -> None:
    """Update the record of a lab whose last command did not finish: when it ends, and how much it costs, according to the
    account.

    The caller holds the lab's lock. Raises the errors of `Account.call`, and StorageError.

    `extend` changes the tags first, then the nodes, then the schedules. If every instance has a schedule, the schedules show
    when the lab ends. If not, the tags show the latest possible end, and the cost until then stays reserved.
    """
    account, cloud = account_of(context.environ, deployment), deployment.cloud
    alive = [instance for instance in instances.find(account, stack=deployment.uid) if instance.alive]
    scheduled: dict[str, datetime] = {}
    with suppress(PermissionRefused):
        scheduled = schedule.read_scheduled_ends(account, stack=deployment.uid)
    ledger.settle(context.paths, account, deployment.uid, expires=cloud.expires)
    booked, cloud.reservation = cloud.reservation, None
    recorded = parse_moment(cloud.expires)
    if all(instance.id in scheduled for instance in alive):
        end = max((scheduled[instance.id] - schedule.AFTER for instance in alive), default=recorded)
        cloud.expires = max(recorded, end).isoformat(timespec="seconds")
    elif booked is not None and (tagged := _read_tagged_end(alive)) and tagged > recorded:
        cloud.reservation = replace(booked, until=tagged.isoformat(timespec="seconds"))
    deployments.save(context.paths, deployment, error=deployment.error)


def _read_tagged_end(alive: Sequence[CloudInstance]) -> datetime | None:
    """Return the latest end in the tags of these instances."""
    ends: list[datetime] = []
    for instance in alive:
        with suppress(ValueError):  # the tag was changed by hand
            ends.append(parse_moment(instance.expires))
    return max(ends, default=None)
