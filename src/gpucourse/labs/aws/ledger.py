"""The ledger of the costs of labs on AWS: one line when a charge begins, and one when it ends.

`settle` compares the account's current charges with the recorded ones, and records the differences. Lines are only added, never
changed. Each line is flushed to the disk before the command continues, so that no crash loses a recorded cost. A line cut off
by a crash is skipped. Amounts are Decimals, stored as text; times are ISO 8601 in UTC.

The prices stored next to the ledger are those that AWS reported at the last deploy in each region.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from gpucourse.aws import instances, money
from gpucourse.aws.money import Bill, Charge, PriceBook, Rate, Span, usd_over
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.model.cloud import CloudInstance, Market
from gpucourse.model.deployment import AwsDeployment
from gpucourse.model.event import Note
from gpucourse.outside.documents import parse_json
from gpucourse.storage import storing
from gpucourse.units import parse_moment
from gpucourse.workspace import deployments
from gpucourse.workspace.files import read_file, read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

VERSION = 1
NO_TIME = timedelta()
_MAX_BYTES = 32 << 20
_MAX_AMOUNT = Decimal(10) ** 12
_MAX_PRICE = Decimal(10_000)  # USD per hour: no correct price of one instance is higher


def update(
    path: Path, stack: str, charges: Sequence[Charge], at: datetime, ends: Mapping[str, tuple[datetime, str]] | None = None
) -> None:
    """Record the changes in this stack's charges. `charges` lists all its current charges.

    A new charge begins at its own start time if it has one, otherwise at `at`. An open charge keeps its start. A charge that is
    no longer listed ended at the time and for the reason in `ends`, otherwise at `at`. Raises StorageError.
    """
    bill, costing = read(path), {charge.item for charge in charges}
    lines = []
    for span in bill.select(stack).open():
        if span.charge.item not in costing:
            moment, reason = (ends or {}).get(span.charge.item, (at, "gone"))
            lines.append(_encode("end", moment, item=span.charge.item, reason=reason))
    running = {span.charge.item for span in bill.open()}
    lines += [_encode("start", charge.since or at, **_flatten(charge)) for charge in charges if charge.item not in running]
    _append(path, lines)


def read(path: Path) -> Bill:
    """Read the ledger at `path`; return an empty one if there is no file. Lines that cannot be parsed are only counted.

    Raises MissingError if the file is not a plain file, or is larger than any valid ledger.
    """
    lines = (read_file(path, _MAX_BYTES) or b"").split(b"\n")
    spans: list[Span] = []
    running: dict[str, int] = {}
    damaged = 0
    for line in filter(None, lines):
        try:
            _apply_entry(parse_json(line), spans, running)
        except (ValueError, KeyError, TypeError, InvalidOperation):
            damaged += 1
    return Bill(spans=tuple(sorted(spans, key=lambda span: span.started)), damaged=damaged)


def _apply_entry(entry: dict[str, Any], spans: list[Span], running: dict[str, int]) -> None:
    at = parse_moment(entry["at"])
    if entry["event"] == "start":
        charge = _parse_charge(entry)
        if charge.item not in running:
            running[charge.item] = len(spans)
            spans.append(Span(charge=charge, started=at))
    elif entry["event"] == "end":
        index = running.pop(entry["item"], None)
        if index is not None:
            span = spans[index]
            spans[index] = replace(span, ended=max(at, span.started), reason=str(entry.get("reason", "")))


def _parse_charge(entry: dict[str, Any]) -> Charge:
    rate = Rate(usd_per_hour=_parse_usd(entry["usd_per_hour"]), note=entry.get("note", ""), **_pick(entry, "source date"))
    return Charge(units=_parse_usd(entry["units"]), rate=rate, **_pick(entry, "item kind what stack module market zone"))


def _pick(entry: dict[str, Any], names: str) -> dict[str, Any]:
    return {name: entry[name] for name in names.split()}


def _parse_usd(text: str) -> Decimal:
    amount = Decimal(text)
    if not 0 <= amount <= _MAX_AMOUNT:  # also false for NaN
        raise ValueError(f"{text[:40]!r} is not an amount")
    return amount


def _flatten(charge: Charge) -> dict[str, str]:
    values = {**vars(charge.rate), **vars(charge)}
    return {name: str(value) for name, value in values.items() if name not in {"rate", "since"}}


def _encode(event: str, at: datetime, **fields: str) -> bytes:
    stamp = at.astimezone(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"v": VERSION, "event": event, "at": stamp, **fields}, ensure_ascii=False).encode() + b"\n"


def _append(path: Path, lines: Sequence[bytes]) -> None:
    """Append whole lines in one write, and flush them to the disk. An incomplete last line of the file is ended first."""
    if not lines:
        return
    with storing(path), hold_lock(path) as file:  # the file is its own lock
        size = os.lseek(file, 0, os.SEEK_END)
        is_cut_off = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        data = (b"\n" if is_cut_off else b"") + b"".join(lines)
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


def settle(
    paths: WorkspacePaths,
    account: Account,
    uid: str,
    *,
    expires: str = "",
    costing: Sequence[Charge] | None = None,
    find_instances: Callable[..., list[CloudInstance]] = instances.find,
) -> None:
    """Update the ledger to the current charges of this stack: `costing` or, without it, the charges in the account.

    An empty `costing` means that no part of the stack costs money now. `find_instances` queries the account about
    instances that have ended. Raises the errors of `Account.call`, and StorageError.
    """
    if costing is None:
        costing = money.find_charges(account, read_prices(paths, account.region), stack=uid)
    at, bill = now(), read(paths.ledger)
    running = bill.select(uid).open()
    costing = [_correct_start(charge, bill.spans) for charge in costing]
    items = {charge.item for charge in costing}
    ends: dict[str, tuple[datetime, str]] = {}
    if any(span.charge.item not in items for span in running):
        cloud_instances: list[CloudInstance] = []
        with suppress(GpucourseError):  # without it, the only known fact is that it ended before now
            cloud_instances = find_instances(account, stack=uid)
        latest = min(at, datetime.fromisoformat(expires)) if expires else at
        ends = _find_ends(running, cloud_instances, latest)
    update(paths.ledger, uid, costing, at, ends)


def settle_if_possible(context: Context, account: Account, deployment: AwsDeployment) -> None:
    """Update the ledger to the current charges of this lab. If that fails, only print a note."""
    try:
        settle(context.paths, account, deployment.uid, expires=deployment.cloud.expires)
    except GpucourseError as error:
        context.watch(Note(text=f"the ledger may be out of date: {error.what}", level="warning"))


def per_hour(paths: WorkspacePaths, deployment: AwsDeployment) -> Decimal | None:
    """Return the current cost of a lab in USD per hour: from the ledger, otherwise from the estimate. None if neither is
    known."""
    bill = read(paths.ledger).select(deployment.uid)
    if bill.spans:
        return cents(bill.per_hour())
    return Decimal(deployment.cloud.usd_per_hour) if deployment.cloud.usd_per_hour else None


def sum_reserved(paths: WorkspacePaths, *, without: Collection[str] = ()) -> Decimal:
    """Return how much the recorded labs will still cost until their deadlines, in USD. Stacks in `without` do not count.

    A lab counts at its current cost in the ledger. A lab that is being built counts at least at its quoted price. A lab that is
    being started or extended counts at least at the reserved amount.
    """
    at, bill = now(), read(paths.ledger)
    total = Decimal(0)
    for lab in deployments.every(paths):
        if not isinstance(lab, AwsDeployment) or lab.stack in without:
            continue
        offer_usd = Decimal(lab.cloud.usd_per_hour or 0) if lab.phase == "creating" else Decimal(0)
        remaining = max(NO_TIME, datetime.fromisoformat(lab.cloud.expires) - at)
        usd = usd_over(max(bill.select(lab.uid).per_hour(), offer_usd), remaining)
        if booked := lab.cloud.reservation:
            usd = max(usd, usd_over(Decimal(booked.usd_per_hour), max(NO_TIME, datetime.fromisoformat(booked.until) - at)))
        total += usd
    return total


def sum_costs(paths: WorkspacePaths, uid: str) -> Decimal:
    """Return the cost of a stack so far, in USD, according to the ledger."""
    return cents(read(paths.ledger).select(uid).total(now()))


def cents(amount: Decimal) -> Decimal:
    """Return the amount rounded to a ten-thousandth of a cent: smaller differences do not matter to a user or a script."""
    return amount.quantize(Decimal("0.000001"))


def machines(paths: WorkspacePaths, uid: str) -> list[str]:
    """Return the ids of the stack's instances that cost money according to the ledger. While the account does not answer, the
    ledger is the only source."""
    return [span.charge.item for span in read(paths.ledger).select(uid).open() if span.charge.kind == "instance"]


def describe_cost_meanwhile(paths: WorkspacePaths, deployment: AwsDeployment) -> str:
    """Describe the cost of a lab while the user decides what to do; return an empty string if it costs nothing or the cost is
    unknown."""
    rate = per_hour(paths, deployment)
    return f"; meanwhile {deployment.stack} costs about ${rate:.2f} an hour" if rate else ""


def _correct_start(charge: Charge, spans: Iterable[Span]) -> Charge:
    """Return the charge, without its start time if its item was stopped after that time: the charge then begins now."""
    last = max((span.ended for span in spans if span.charge.item == charge.item and span.ended), default=None)
    return replace(charge, since=None) if last and charge.since and charge.since <= last else charge


def _find_ends(
    running: Iterable[Span], cloud_instances: Sequence[CloudInstance], latest: datetime
) -> dict[str, tuple[datetime, str]]:
    """Return when and why each item ended, if the account still shows that. The other items ended at `latest`.

    AWS no longer shows the disk of a terminated instance. The disk is recognised because its charge began at the same time as
    the instance's.
    """
    ends: dict[str, tuple[datetime, str]] = {
        item: (instance.ended or latest, instance.reason or instance.state)
        for item, instance in money.match_ended_instances(cloud_instances).items()
    }
    spans = list(running)
    hosts = [span for span in spans if span.charge.kind == "instance" and span.charge.item in ends]
    for span in spans:
        if span.charge.item in ends:
            continue
        ends[span.charge.item] = latest, "gone"
        if span.charge.kind == "disk" and hosts:
            host = min(hosts, key=lambda host_span: abs((host_span.started - span.started).total_seconds()))
            if abs((host.started - span.started).total_seconds()) < 60:
                ends[span.charge.item] = ends[host.charge.item]
    return ends


@dataclass(frozen=True, kw_only=True)
class _StoredPrice:
    """The price of an instance per hour, in USD, with its source and date. An empty zone means any zone."""

    region: str
    instance_type: str
    market: Market
    zone: str
    usd_per_hour: Decimal
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class _StoredPrices:
    """The newest prices that AWS reported to a deploy of this workspace."""

    prices: list[_StoredPrice] = field(default_factory=list)
    version: int = 1


def read_prices(paths: WorkspacePaths, region: str) -> PriceBook:
    """Return the prices of a region. If the file cannot be read, return the prices that ship with the course, with a
    complaint."""
    try:
        stored = _read_stored(paths)
    except MissingError as error:
        return PriceBook(region=region, complaints=(error.what,))
    return PriceBook(
        region=region,
        fresh={
            (price.instance_type, price.market, price.zone): Rate(
                usd_per_hour=price.usd_per_hour, source=price.source, date=price.date
            )
            for price in stored.prices
            if price.region == region and price.usd_per_hour.is_finite() and 0 <= price.usd_per_hour <= _MAX_PRICE
        },
    )


def store_prices(context: Context, book: PriceBook) -> None:
    """Store the prices that AWS reported, for the ledger and for commands that run while AWS does not answer.

    Raises StorageError, StackBusy.
    """
    with context.lock("prices", "store the prices"):
        try:
            other_prices = [price for price in _read_stored(context.paths).prices if price.region != book.region]
        except MissingError:  # a readable file replaces it
            other_prices = []
        new_prices = [
            _StoredPrice(
                region=book.region,
                instance_type=name,
                market=market,
                zone=zone,
                usd_per_hour=rate.usd_per_hour,
                source=rate.source,
                date=rate.date,
            )
            for (name, market, zone), rate in book.fresh.items()
        ]
        write_record(context.paths.prices, _StoredPrices(prices=[*other_prices, *new_prices]))


def _read_stored(paths: WorkspacePaths) -> _StoredPrices:
    return read_record(paths.prices, _StoredPrices) or _StoredPrices()
