from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from gpucourse.aws.pricing import PRICE_LIST, SPOT_HISTORY, PriceBook, estimate, refresh_prices
from gpucourse.errors import UnknownName, UsageError
from gpucourse.model.cloud import LabNeed, Machines, Market
from gpucourse.model.money import Rate, usd_per_hour
from tests.unit.aws.cloud import ScriptedAccount, make_refusal

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOOK = PriceBook(region="us-east-2")
HEAD = Machines(instance_type="t3.medium", disk_gib=20, spot=False)


def lab(*machines: Machines, hours: str = "2", storage: int = 0) -> LabNeed:
    return LabNeed(module="1", title="lab", machines=machines, storage_gib=storage, hours=Decimal(hours))


def gpu(name: str, count: int = 1) -> Machines:
    return Machines(instance_type=name, count=count)


def cents(need: LabNeed, market: Market = "on-demand", book: PriceBook = BOOK) -> str:
    return f"{usd_per_hour(estimate(book, need, market=market)) * need.hours:.2f}"


@pytest.mark.parametrize(
    ("need", "usd"),
    [
        (lab(gpu("g4dn.xlarge"), hours="3"), "1.63"),
        (lab(HEAD, gpu("g4dn.xlarge", 3)), "3.51"),
        (lab(gpu("g4dn.2xlarge", 2)), "3.07"),
        (lab(gpu("g4dn.xlarge"), gpu("g6.xlarge"), gpu("g5.xlarge"), gpu("g6e.xlarge"), hours="0.5"), "2.13"),
    ],
    ids=["M1-T4", "M2-T4", "M3-T4", "M4"],
)
def test_estimate_is_what_was_worked_out_by_hand(need: LabNeed, usd: str) -> None:
    """100 GB of gp3 and one IPv4 a node (20 GB on a head): M1 is 3 h x (0.526 + 0.005 + 100 x 0.08/730) = 1.63.
    A head may use 1.6 vCPUs above its baseline, at $0.05 an hour each."""
    assert cents(need) == usd


def test_instance_on_spot_costs_the_dearest_zone_unless_one_is_named() -> None:
    assert BOOK.instance("g6.2xlarge", "spot").usd_per_hour == Decimal("0.3568")
    rates = [("us-east-2a", "0.30"), ("us-east-2b", "0.20")]
    fresh = tuple(
        (("g6.2xlarge", "spot", zone), Rate(usd_per_hour=Decimal(usd), source=SPOT_HISTORY, date="d")) for zone, usd in rates
    )
    book = PriceBook(region="us-east-2", fresh=fresh)  # type: ignore[arg-type]
    assert book.instance("g6.2xlarge", "spot").usd_per_hour == Decimal("0.30")
    assert book.instance("g6.2xlarge", "spot", "us-east-2b").usd_per_hour == Decimal("0.20")
    assert book.instance("g6.2xlarge", "spot", "us-east-2c").usd_per_hour == Decimal("0.3568")
    assert book.instance("g6.2xlarge", "on-demand").usd_per_hour == Decimal("0.9776")


def test_instance_says_when_its_price_is_another_and_fails_when_there_is_none() -> None:
    assert BOOK.instance("g4dn.xlarge").note == ""
    assert "eu-west-1 may differ" in PriceBook(region="eu-west-1").instance("g4dn.xlarge").note
    assert "eu-west-1 may differ" in PriceBook(region="eu-west-1").disk().note
    spot = BOOK.instance("g4dn.xlarge", "spot")
    assert (spot.usd_per_hour, "no spot price" in spot.note) == (Decimal("0.526"), True)
    with pytest.raises(UnknownName):
        BOOK.instance("g99.xlarge")
    with pytest.raises(UsageError):
        BOOK.instance("p3.2xlarge")


def product(usd: str, unit: str = "Hrs") -> str:
    dimensions = {"d": {"unit": unit, "pricePerUnit": {"USD": usd}}}
    return json.dumps({"product": {}, "terms": {"OnDemand": {"t": {"priceDimensions": dimensions}}}})


def history(*rows: tuple[str, str, str, int]) -> dict[str, Any]:
    return {
        "SpotPriceHistory": [
            {
                "InstanceType": name,
                "AvailabilityZone": zone,
                "SpotPrice": usd,
                "Timestamp": datetime(2026, 11, 20, hour, tzinfo=UTC),
            }
            for name, zone, usd, hour in rows
        ]
    }


def test_refresh_prices_takes_the_price_list_and_the_newest_spot_price_of_each_zone() -> None:
    account = ScriptedAccount(
        {
            ("pricing", "get_products"): {
                "PriceList": [product("0.5300000000"), product("0.0000000000"), product("9", "Quantity")]
            },
            ("ec2", "describe_spot_price_history"): history(
                ("g4dn.xlarge", "us-east-2a", "0.19", 3),
                ("g4dn.xlarge", "us-east-2a", "0.21", 9),
                ("g4dn.xlarge", "us-east-2b", "0.25", 1),
            ),
        }
    )
    book = refresh_prices(BOOK, account, ["g4dn.xlarge"], NOW)
    on_demand = book.instance("g4dn.xlarge")
    assert (on_demand.usd_per_hour, on_demand.source, on_demand.date) == (Decimal("0.53"), PRICE_LIST, "2026-11-21")
    assert book.instance("g4dn.xlarge", "spot", "us-east-2a").usd_per_hour == Decimal("0.21")
    assert book.instance("g4dn.xlarge", "spot").usd_per_hour == Decimal("0.25")
    assert book.complaints == ()
    filters = {tag_filter["Field"]: tag_filter["Value"] for tag_filter in account.list_calls("get_products")[0]["Filters"]}
    assert filters["marketoption"] == "OnDemand"
    assert filters["regionCode"] == "us-east-2"
    assert account.list_calls("describe_spot_price_history")[0]["StartTime"] == NOW

    account.answers["pricing", "get_products"] = make_refusal("pricing:GetProducts")
    book = refresh_prices(BOOK, account, ["g4dn.xlarge"], NOW)
    assert book.instance("g4dn.xlarge").date == "2026-07-20", "the price that ships with the course"
    assert book.instance("g4dn.xlarge", "spot").source == SPOT_HISTORY
    assert book.complaints == ("pricing:GetProducts: refused",)
