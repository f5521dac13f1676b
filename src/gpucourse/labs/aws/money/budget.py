"""The learner's money, and the one place that refuses to spend more of it: before `deploy`, `start` and `extend`.

What a command that was killed had set aside counts until the account was asked what has come of it: see `follow_account`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.aws import instances, schedule
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, PermissionRefused, UsageError
from gpucourse.labs.aws.account import account_of
from gpucourse.labs.aws.money import ledger as stack_ledger
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.deployment import AwsDeployment, Reservation
from gpucourse.model.event import Note
from gpucourse.model.money import usd_over
from gpucourse.units import parse_moment
from gpucourse.workspace import deployments, ledger
from gpucourse.workspace.lock import try_lock

if TYPE_CHECKING:
    from gpucourse.labs.aws.money.quote import Quote


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The learner's money, in USD: the budget of the whole course (None: none was set), what is spent of it, and what other
    labs will still cost until their deadlines."""

    budget: Decimal | None
    spent: Decimal
    reserved: Decimal = Decimal(0)

    @property
    def remaining(self) -> Decimal | None:
        """What may still be spent."""
        return None if self.budget is None else self.budget - self.spent - self.reserved

    def allows(self, usd: Decimal) -> bool:
        """Whether so much may still be spent; nothing at all always may."""
        return self.remaining is None or not usd or usd <= self.remaining

    def check(self, quotes: list[Quote], *, over_budget: bool, command: str) -> None:
        """Raises UsageError if these labs, left alone until their end, cost more than is left. `command`: what was typed."""
        wanted = sum((quote.to_the_end for quote in quotes if quote.creates), Decimal(0))
        self.check_usd(wanted, less="a shorter life (--ttl), --spot, fewer --nodes", command=command, over_budget=over_budget)

    def check_usd(self, usd: Decimal, *, less: str, command: str, over_budget: bool) -> None:
        """Raises UsageError if that is more than is left. `less`: what costs less; `command`: what was typed."""
        if over_budget or self.allows(usd):
            return
        remaining = max(self.remaining or Decimal(0), Decimal(0))
        beside = f" beside ${self.reserved:.2f} for other labs until their deadlines" if self.reserved else ""
        raise UsageError(
            f"this would cost ${usd:.2f} to its end; ${remaining:.2f} of the budget of ${self.budget:.2f} is left{beside}",
            hint=f"{less}; or go ahead anyway: {command} --yes-over-budget; the budget is set in gpucourse.yaml (budget_usd)",
        )


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a lab that stands is about to cost: USD an hour until a moment. `less`, `command`: see `Budget.check_usd`."""

    per_hour: Decimal
    until: datetime
    less: str
    command: str


def read_budget(context: Context, stacks: Collection[str]) -> Budget:
    """The learner's money before these stacks are built: what all other labs will still cost is set aside."""
    budget = context.settings.budget_usd
    if budget is not None:
        follow_killed_commands(context)
    return Budget(
        budget=budget,
        spent=ledger.read(context.paths.ledger).total(stack_ledger.now()),
        reserved=Decimal(0) if budget is None else stack_ledger.sum_reserved(context, without=stacks),
    )


@contextmanager
def reserve(context: Context, deployment: AwsDeployment, spending: Spending, *, over_budget: bool) -> Iterator[None]:
    """Look at the budget and put on record what the lab is about to cost, under one lock, for the block: another command that
    asks meanwhile sees it. Raises UsageError if it is more than is left, StackBusy."""
    usd = usd_over(spending.per_hour, max(spending.until - stack_ledger.now(), stack_ledger.NO_TIME))
    with context.lock("budget", spending.command.removeprefix("gpucourse ")):
        read_budget(context, {deployment.stack}).check_usd(
            usd, less=spending.less, command=spending.command, over_budget=over_budget
        )
        until = spending.until.isoformat(timespec="seconds")
        booked = deployment.cloud.reservation = Reservation(usd_per_hour=f"{spending.per_hour:.4f}", until=until)
        deployments.save(context.paths, deployment, error=deployment.error)
    try:
        yield
    finally:
        if deployment.cloud.reservation is booked:  # else the block knows better
            deployment.cloud.reservation = None
        deployments.save(context.paths, deployment, error=deployment.error)


def follow_killed_commands(context: Context) -> None:
    """Let the records of labs whose last command was killed follow the account. Where it does not answer, what the command had
    set aside still counts, and that is told."""
    for known in deployments.readable(context.paths)[0]:
        if not isinstance(known, AwsDeployment) or known.cloud.reservation is None:
            continue
        with try_lock(context.paths.lock(known.stack), "look at the budget") as free:
            lab = deployments.load_as(context.paths, known.stack, AwsDeployment) if free else None
            if lab is None or lab.cloud.reservation is None:  # a command is at work on it, or was a moment ago
                continue
            try:
                follow_account(context, lab)
            except GpucourseError as error:
                text = f"what a killed command set aside for {lab.stack} still counts: {error.what}"
                context.watch(Note(text=text, level="warning"))


def follow_account(context: Context, deployment: AwsDeployment) -> None:
    """Put on record what the account says of a lab whose last command did not come to its end: when the lab ends, and what it
    costs. The lab's lock is held. Raises what a call raises, and StorageError.

    The backstop is moved after the nodes: where every instance has its schedule, that is the end. Where not, the tags of the
    instances tell, which are written first: the nodes may have a later end than that on record, so it stays set aside.
    """
    account, cloud = account_of(context, deployment), deployment.cloud
    alive = [instance for instance in instances.find(account, stack=deployment.uid) if instance.alive]
    scheduled: dict[str, datetime] = {}
    with suppress(PermissionRefused):
        scheduled = schedule.read_scheduled_ends(account, stack=deployment.uid)
    stack_ledger.settle(context, account, deployment.uid, expires=cloud.expires)
    booked, cloud.reservation = cloud.reservation, None
    recorded = parse_moment(cloud.expires)
    if all(instance.id in scheduled for instance in alive):
        end = max((scheduled[instance.id] - schedule.AFTER for instance in alive), default=recorded)
        cloud.expires = max(recorded, end).isoformat(timespec="seconds")
    elif booked is not None and (tagged := _read_tagged_end(alive)) and tagged > recorded:
        cloud.reservation = replace(booked, until=tagged.isoformat(timespec="seconds"))
    deployments.save(context.paths, deployment, error=deployment.error)


def _read_tagged_end(alive: Sequence[CloudInstance]) -> datetime | None:
    """The latest end that the tags of these instances say."""
    ends: list[datetime] = []
    for instance in alive:
        with suppress(ValueError):  # somebody else wrote it
            ends.append(parse_moment(instance.expires))
    return max(ends, default=None)
