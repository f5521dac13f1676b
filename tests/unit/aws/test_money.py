"""The cost of a lab before it exists and while it exists, and the amount that AWS has billed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gpucourse.aws import instances, money
from gpucourse.aws.money import (
    PRICE_LIST,
    SPOT_HISTORY,
    PriceBook,
    PriceKey,
    Rate,
    estimate,
    query_billed_cost,
    refresh_prices,
    usd_per_hour,
)
from gpucourse.errors import UnknownName, UsageError
from gpucourse.model.cloud import LabNeed, Machines, Market
from tests.unit.aws.cloud import TAGS, ScriptedAccount, as_tag_list, make_refusal
from tests.unit.aws.test_instances import make_instance

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
def test_usd_per_hour_and_estimate_are_what_was_worked_out_by_hand(need: LabNeed, usd: str) -> None:
    """Compare with amounts calculated by hand. A node has 100 GB of gp3 (a head 20 GB) and one IPv4 address, so module 1 costs
    3 h x (0.526 + 0.005 + 100 x 0.08/730) = 1.63. A head may use 1.6 vCPUs above its baseline, at $0.05 an hour each.
    """
    assert cents(need) == usd


def test_instance_on_spot_has_the_price_of_the_most_expensive_zone_unless_one_is_named() -> None:
    assert BOOK.instance("g6.2xlarge", "spot").usd_per_hour == Decimal("0.3568")
    rates = [("us-east-2a", "0.30"), ("us-east-2b", "0.20")]
    fresh: dict[PriceKey, Rate] = {
        ("g6.2xlarge", "spot", zone): Rate(usd_per_hour=Decimal(usd), source=SPOT_HISTORY, date="d") for zone, usd in rates
    }
    book = PriceBook(region="us-east-2", fresh=fresh)
    assert book.instance("g6.2xlarge", "spot").usd_per_hour == Decimal("0.30")
    assert book.instance("g6.2xlarge", "spot", "us-east-2b").usd_per_hour == Decimal("0.20")
    assert book.instance("g6.2xlarge", "spot", "us-east-2c").usd_per_hour == Decimal("0.3568")
    assert book.instance("g6.2xlarge", "on-demand").usd_per_hour == Decimal("0.9776")


def test_instance_says_when_its_price_is_another_and_fails_when_there_is_none() -> None:
    assert BOOK.instance("g4dn.xlarge").note == ""
    assert "eu-west-1 may differ" in PriceBook(region="eu-west-1").instance("g4dn.xlarge").note
    assert "eu-west-1 may differ" in PriceBook(region="eu-west-1").unit("disk").note
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


MADE = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
VOLUME = {
    "VolumeId": "vol-1", "VolumeType": "gp3", "Size": 120, "AvailabilityZone": "us-east-2b", "CreateTime": MADE,
    "Tags": as_tag_list(TAGS),
}  # fmt: skip
SYSTEM = {
    "FileSystemId": "fs-1", "LifeCycleState": "available", "SizeInBytes": {"Value": 5 << 30}, "CreationTime": MADE,
    "Tags": as_tag_list(TAGS),
}  # fmt: skip
GONE = {**SYSTEM, "FileSystemId": "fs-2", "Tags": as_tag_list({"Project": "other"})}


def account(*instance: dict[str, Any]) -> ScriptedAccount:
    return ScriptedAccount(
        {
            ("ec2", "describe_instances"): {"Reservations": [{"Instances": list(instance)}]},
            ("ec2", "describe_volumes"): {"Volumes": [VOLUME]},
            ("efs", "describe_file_systems"): {"FileSystems": [SYSTEM, GONE]},
        }
    )


def test_find_charges_lists_everything_that_costs_since_it_began() -> None:
    charge_list = money.find_charges(account(make_instance()), BOOK, stack="s-1")
    assert [(charge.item, charge.kind, int(charge.units)) for charge in charge_list] == [
        ("i-0", "instance", 1),
        ("i-0:ipv4", "address", 1),
        ("vol-1", "disk", 120),
        ("fs-1", "storage", 5),
    ]
    assert all(charge.since == MADE and (charge.stack, charge.module) == ("s-1", "3") for charge in charge_list)
    hourly = sum((charge.units * charge.rate.usd_per_hour for charge in charge_list), Decimal(0))
    assert f"{hourly:.4f}" == f"{0.526 + 0.005 + 120 * 0.08 / 730 + 5 * 0.30 / 730:.4f}"


def test_find_charges_prices_spot_at_its_zone_and_more_throughput_of_a_disk() -> None:
    costing = account(make_instance(InstanceType="g6.xlarge", InstanceLifecycle="spot"))
    costing.answers["ec2", "describe_volumes"] = {"Volumes": [VOLUME | {"Throughput": 500}]}
    spot, _address, _disk, throughput, _storage = money.find_charges(costing, BOOK, stack="s-1")
    assert (spot.market, spot.zone, spot.rate.usd_per_hour) == ("spot", "us-east-2b", Decimal("0.2321"))
    assert (throughput.item, int(throughput.units)) == ("vol-1:throughput", 375)
    assert f"{throughput.per_hour:.4f}" == f"{375 * 0.04 / 730:.4f}"


def test_find_charges_leaves_out_an_instance_that_does_not_run() -> None:
    for state in ("stopped", "terminated"):
        charge_list = money.find_charges(account(make_instance(state)), BOOK, stack="s-1")
        assert [charge.item for charge in charge_list] == ["vol-1", "fs-1"]


def test_match_ended_instances_says_when_and_why() -> None:
    fields = {"StateTransitionReason": "User initiated (2026-11-21 10:00:00 GMT)", "StateReason": {"Message": "deadline"}}
    instance = instances.find(account(make_instance("terminated", **fields), make_instance(InstanceId="i-1")), stack="s-1")
    reason = money.match_ended_instances(instance)
    assert set(reason) == {"i-0", "i-0:ipv4"}
    assert reason["i-0"].ended == MADE + timedelta(hours=1)
    assert reason["i-0"].reason == "deadline"


FIRST, LAST = date(2026, 11, 1), date(2026, 11, 21)


def answer(*services: tuple[str, str], page: str = "", estimated: bool = False) -> dict[str, Any]:
    groups = [{"Keys": [name], "Metrics": {"UnblendedCost": {"Amount": usd, "Unit": "USD"}}} for name, usd in services]
    period = {"TimePeriod": {"Start": "2026-11-01", "End": "2026-11-22"}, "Groups": groups, "Estimated": estimated}
    return {"ResultsByTime": [period]} | ({"NextPageToken": page} if page else {})


def test_query_billed_cost_asks_once_by_tag_and_service() -> None:
    reply = answer(("EC2 - Other", "0.25"), ("Amazon Elastic Compute Cloud - Compute", "3.125"), estimated=True)
    account = ScriptedAccount({("ce", "get_cost_and_usage"): reply})
    bill = query_billed_cost(account, FIRST, LAST)
    assert bill.services == (("Amazon Elastic Compute Cloud - Compute", Decimal("3.125")), ("EC2 - Other", Decimal("0.25")))
    assert (bill.usd, bill.requests, bill.final) == (Decimal("3.375"), 1, False)
    [call] = account.list_calls("get_cost_and_usage")
    assert call["TimePeriod"] == {"Start": "2026-11-01", "End": "2026-11-22"}  # AWS leaves the last day out
    assert call["Filter"] == {"Tags": {"Key": "Project", "Values": ["gpucourse"]}}


def test_query_billed_cost_counts_pages_since_each_costs_a_cent() -> None:
    def by_page(parameters: dict[str, Any]) -> dict[str, Any]:
        return answer(("EC2 - Other", "1")) if "NextPageToken" in parameters else answer(("EC2 - Other", "2"), page="next")

    bill = query_billed_cost(ScriptedAccount({("ce", "get_cost_and_usage"): by_page}), FIRST, LAST)
    assert (bill.usd, bill.requests, bill.final) == (Decimal(3), 2, True)
