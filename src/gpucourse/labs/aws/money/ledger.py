"""Keeping the ledger correct: compares what costs money now, according to the account, with what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from gpucourse.aws import charges, instances
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws.money.prices import read_prices
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.deployment import AwsDeployment
from gpucourse.model.money import Charge, Span, usd_over
from gpucourse.workspace import deployments, ledger

Ends = dict[str, tuple[datetime, str]]
NO_TIME = timedelta()


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


def settle(
    context: Context,
    account: Account,
    uid: str,
    *,
    expires: str = "",
    find_charges: Callable[..., list[Charge]] = charges.find_charges,
    find_instances: Callable[..., list[CloudInstance]] = instances.find,
) -> None:
    """Bring the ledger in line with what this stack costs right now. Raises the errors of `Account.call`, and StorageError.

    `find_charges` and `find_instances` query the account.
    """
    costing = find_charges(account, read_prices(context, account.region), stack=uid)
    _settle(context, account, uid, costing, expires, find_instances)


def close(context: Context, account: Account, uid: str, *, expires: str = "") -> None:
    """Record that nothing of this stack costs any more, each item since it ended. Raises StorageError."""
    _settle(context, account, uid, (), expires, instances.find)


def per_hour(context: Context, deployment: AwsDeployment) -> Decimal | None:
    """Return USD per hour that a lab costs now, according to the ledger, else as estimated; None if neither is known."""
    bill = ledger.read(context.paths.ledger).of(deployment.uid)
    if bill.spans:
        return cents(bill.per_hour())
    return Decimal(deployment.cloud.usd_per_hour) if deployment.cloud.usd_per_hour else None


def sum_reserved(context: Context, *, without: Collection[str] = ()) -> Decimal:
    """Return USD that the labs on record will still cost until their deadlines, except the stacks in `without`.

    Each counts with its current cost in the ledger; one that is being built with its quoted price, one that is being started or
    extended also with what it is about to cost.
    """
    at, known = now(), ledger.read(context.paths.ledger)
    total = Decimal(0)
    for lab in deployments.every(context.paths):
        if not isinstance(lab, AwsDeployment) or lab.stack in without:
            continue
        offered = Decimal(lab.cloud.usd_per_hour or 0) if lab.phase == "creating" else Decimal(0)
        left = max(NO_TIME, datetime.fromisoformat(lab.cloud.expires) - at)
        usd = usd_over(max(known.of(lab.uid).per_hour(), offered), left)
        if booked := lab.cloud.reservation:
            usd = max(usd, usd_over(Decimal(booked.usd_per_hour), max(NO_TIME, datetime.fromisoformat(booked.until) - at)))
        total += usd
    return total


def sum_costs(context: Context, uid: str) -> Decimal:
    """Return USD that a stack has cost so far, according to the ledger."""
    return cents(ledger.read(context.paths.ledger).of(uid).total(now()))


def cents(amount: Decimal) -> Decimal:
    """Return the amount rounded to a ten-thousandth of a cent: finer steps are of no use to a user or a script."""
    return amount.quantize(Decimal("0.000001"))


def machines(context: Context, uid: str) -> list[str]:
    """Return the instances of a stack that cost, by the ledger: all that is known of them if the account does not answer."""
    return [span.charge.item for span in ledger.read(context.paths.ledger).of(uid).open() if span.charge.kind == "instance"]


def describe_cost_meanwhile(context: Context, deployment: AwsDeployment) -> str:
    """Describe what a lab costs while the user decides what to do; empty if it costs nothing or the cost is unknown."""
    rate = per_hour(context, deployment)
    return f"; meanwhile {deployment.stack} costs about ${rate:.2f} an hour" if rate else ""


def _settle(
    context: Context,
    account: Account,
    uid: str,
    costing: Sequence[Charge],
    expires: str,
    find_instances: Callable[..., list[CloudInstance]],
) -> None:
    at = now()
    known = ledger.read(context.paths.ledger)
    running = known.of(uid).open()
    costing = [_again(charge, known.spans) for charge in costing]
    items = {charge.item for charge in costing}
    ends: Ends = {}
    if any(span.charge.item not in items for span in running):
        cloud_instances: list[CloudInstance] = []
        with suppress(GpucourseError):  # without it, the only known fact is that it ended before now
            cloud_instances = find_instances(account, stack=uid)
        ends = _ends(running, cloud_instances, _latest(at, expires))
    ledger.settle(context.paths.ledger, uid, costing, at, ended=ends)


def _again(charge: Charge, spans: Iterable[Span]) -> Charge:
    """Return the charge with the right beginning: if the item cost before, was stopped, and costs again, it began just now."""
    last = max((span.ended for span in spans if span.charge.item == charge.item and span.ended), default=None)
    return replace(charge, since=None) if last and charge.since and charge.since <= last else charge


def _ends(running: Iterable[Span], cloud_instances: Sequence[CloudInstance], latest: datetime) -> Ends:
    """Return when and why each item ended, if the account still shows it; the rest ended by `latest`.

    A terminated instance no longer says which disk was its own: it is the one that began with it.
    """
    known: Ends = {
        item: (instance.ended or latest, instance.reason or instance.state)
        for item, instance in charges.match_ended_instances(cloud_instances).items()
    }
    spans = list(running)
    hosts = [span for span in spans if span.charge.kind == "instance" and span.charge.item in known]
    for span in spans:
        if span.charge.item in known:
            continue
        known[span.charge.item] = latest, "gone"
        if span.charge.kind == "disk" and hosts:
            host = min(hosts, key=lambda host_span: abs((host_span.started - span.started).total_seconds()))
            if abs((host.started - span.started).total_seconds()) < 60:
                known[span.charge.item] = known[host.charge.item]
    return known


def _latest(at: datetime, expires: str) -> datetime:
    """Return the latest possible end of an item whose end was not observed: now, or its deadline if that is earlier."""
    if not expires:
        return at
    return min(at, datetime.fromisoformat(expires))
