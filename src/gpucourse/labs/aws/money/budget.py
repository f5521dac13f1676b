"""The learner's money, and the one place that refuses to spend more of it: before `deploy`, `start` and `extend`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.aws.money import ledger as stack_ledger
from gpucourse.model.deployment import AwsDeployment, Reservation
from gpucourse.model.money import usd_over
from gpucourse.workspace import deployments, ledger

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
        deployment.cloud.reservation = Reservation(usd_per_hour=f"{spending.per_hour:.4f}", until=until)
        deployments.save(context.paths, deployment, error=deployment.error)
    try:
        yield
    finally:
        deployment.cloud.reservation = None
        deployments.save(context.paths, deployment, error=deployment.error)
