from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from gpucourse.aws.money import Bill, Charge, Rate, Span

T0 = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def span(item: str, usd: str, *, hours: float | None = None, **fields: Any) -> Span:
    rate = Rate(usd_per_hour=Decimal(usd), source="the table", date="2026-07-20")
    values = {"what": "g4dn.xlarge", "kind": "instance", "stack": "03-aws", "module": "3", "zone": "us-east-2a"} | fields
    end = None if hours is None else T0 + hours * HOUR
    return Span(charge=Charge(item=item, rate=rate, **values), started=T0, ended=end)


def test_total_counts_seconds_and_at_least_a_minute_for_an_instance() -> None:
    bill = Bill(spans=(span("i-1", "3.6", hours=10 / 3600), span("vol-1", "3.6", kind="disk", hours=10 / 3600)))
    assert bill.sum_by("item", T0 + HOUR) == {"i-1": Decimal("0.06"), "vol-1": Decimal("0.01")}


def test_sum_by_adds_modules_stacks_kinds_and_markets() -> None:
    spot_span = span("i-2", "2", stack="01-aws", module="1", market="spot")
    bill = Bill(spans=(span("i-1", "0.526"), span("vol-1", "0.01", kind="disk"), spot_span))
    now = T0 + HOUR
    assert bill.sum_by("module", now)["1"] == 2
    assert set(bill.sum_by("stack", now)) == {"03-aws", "01-aws"}
    assert set(bill.sum_by("kind", now)) == {"instance", "disk"}
    assert bill.sum_by("market", now)["spot"] == 2
    for field in ("module", "stack", "kind", "market", "zone", "item"):
        assert sum(bill.sum_by(field, now).values(), Decimal(0)) == bill.total(now)
    assert bill.select("01-aws").per_hour() == 2


def test_total_between_two_moments_counts_what_ran_then() -> None:
    bill = Bill(spans=(span("i-1", "1"), span("i-2", "1", hours=2)))
    now = T0 + 10 * HOUR
    assert bill.total(now, T0 + HOUR / 2, T0 + HOUR) == 1
    assert bill.total(now, T0 + HOUR, T0 + 3 * HOUR) == 2 + 1
    assert bill.total(now, T0 + 9 * HOUR, now) == 1
    assert bill.select("02-aws").total(now, T0, T0 + HOUR) == 0
