"""Money is a rate times a span: what a lab will cost, and what it has cost. USD as Decimal; moments with their zone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from gpucourse.model.cloud import Market

Charged = Literal["instance", "burst", "disk", "address", "storage"]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A price in USD for one hour of one unit, with where it was read and on which day (ISO 8601). `note` limits it."""

    usd_per_hour: Decimal
    source: str
    date: str
    note: str = ""

    @property
    def origin(self) -> str:
        """Return where and when it was read."""
        return f"{self.source}, {self.date}"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A number of units at a rate. If it belongs to something that exists: `item` is its id in the cloud, `since` when it
    began, if the cloud reports that."""

    what: str
    kind: Charged
    rate: Rate
    units: Decimal = Decimal(1)
    item: str = ""
    stack: str = ""
    module: str = ""
    market: Market = "on-demand"
    zone: str = ""
    since: datetime | None = None

    @property
    def per_hour(self) -> Decimal:
        """Return the USD an hour for all units."""
        return self.units * self.rate.usd_per_hour


@dataclass(frozen=True, kw_only=True)
class Span:
    """A charge over a time: `ended` is None while it lasts."""

    charge: Charge
    started: datetime
    ended: datetime | None = None
    reason: str = ""

    def cost(self, now: datetime, since: datetime | None = None, until: datetime | None = None) -> Decimal:
        """Return the USD up to now, or of the part between two moments. Instances count at least a minute."""
        first = max(self.started, since) if since else self.started
        last = min(self.ended or now, now)
        last = min(last, until) if until else last
        seconds = Decimal(str(max(0.0, (last - first).total_seconds())))
        if self.charge.kind == "instance" and since is None and until is None and now >= self.started:
            seconds = max(seconds, Decimal(60))
        return seconds * self.charge.per_hour / 3600


@dataclass(frozen=True, kw_only=True)
class Bill:
    """Every recorded span, in the order of their beginnings; `damaged` is how many lines of it could not be read."""

    spans: tuple[Span, ...]
    damaged: int = 0

    def of(self, stack: str) -> Bill:
        """Return the spans of one stack."""
        return replace(self, spans=tuple(span for span in self.spans if span.charge.stack == stack))

    def open(self) -> tuple[Span, ...]:
        """Return the charges that still run."""
        return tuple(span for span in self.spans if span.ended is None)

    def per_hour(self) -> Decimal:
        """Return the USD an hour of the charges that run right now."""
        return usd_per_hour(span.charge for span in self.open())

    def total(self, now: datetime, since: datetime | None = None, until: datetime | None = None) -> Decimal:
        """Return the USD of everything up to now, or between two moments."""
        return sum((span.cost(now, since, until) for span in self.spans), Decimal(0))

    def by(self, field: str, now: datetime) -> dict[str, Decimal]:
        """Return the USD up to now by a field of the charges: `module`, `stack`, `kind`, `market`, `zone` or `item`."""
        totals: dict[str, Decimal] = {}
        for span in self.spans:
            key = str(getattr(span.charge, field))
            totals[key] = totals.get(key, Decimal(0)) + span.cost(now)
        return totals


def usd_per_hour(charges: Iterable[Charge]) -> Decimal:
    """Return the USD an hour for all of them together."""
    return sum((charge.per_hour for charge in charges), Decimal(0))


def usd_over(per_hour: Decimal, time: timedelta | Decimal) -> Decimal:
    """Return the USD for that time: a span of time, or hours."""
    return per_hour * time if isinstance(time, Decimal) else per_hour * Decimal(str(time.total_seconds())) / 3600
