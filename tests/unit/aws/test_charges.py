from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from gpucourse.aws import charges, instances
from gpucourse.aws.pricing import PriceBook
from tests.unit.aws.cloud import TAGS, ScriptedAccount, as_tag_list
from tests.unit.aws.test_instances import make_instance

BOOK = PriceBook(region="us-east-2")
MADE = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
VOLUME = {
    "VolumeId": "vol-1",
    "VolumeType": "gp3",
    "Size": 120,
    "AvailabilityZone": "us-east-2b",
    "CreateTime": MADE,
    "Tags": as_tag_list(TAGS),
}
SYSTEM = {
    "FileSystemId": "fs-1",
    "LifeCycleState": "available",
    "SizeInBytes": {"Value": 5 << 30},
    "CreationTime": MADE,
    "Tags": as_tag_list(TAGS),
}
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
    charge_list = charges.find_charges(account(make_instance()), BOOK, stack="s-1")
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
    spot, _address, _disk, throughput, _storage = charges.find_charges(costing, BOOK, stack="s-1")
    assert (spot.market, spot.zone, spot.rate.usd_per_hour) == ("spot", "us-east-2b", Decimal("0.2321"))
    assert (throughput.item, int(throughput.units)) == ("vol-1:throughput", 375)
    assert f"{throughput.per_hour:.4f}" == f"{375 * 0.04 / 730:.4f}"


def test_find_charges_leaves_out_an_instance_that_does_not_run() -> None:
    for state in ("stopped", "terminated"):
        charge_list = charges.find_charges(account(make_instance(state)), BOOK, stack="s-1")
        assert [charge.item for charge in charge_list] == ["vol-1", "fs-1"]


def test_match_ended_instances_says_when_and_why() -> None:
    said = {"StateTransitionReason": "User initiated (2026-11-21 10:00:00 GMT)", "StateReason": {"Message": "deadline"}}
    instance = instances.find(account(make_instance("terminated", **said), make_instance(InstanceId="i-1")), stack="s-1")
    ended = charges.match_ended_instances(instance)
    assert set(ended) == {"i-0", "i-0:ipv4"}
    assert ended["i-0"].ended == MADE + timedelta(hours=1)
    assert ended["i-0"].reason == "deadline"
