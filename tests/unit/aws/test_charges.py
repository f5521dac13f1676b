from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from gpucourse.aws import charges, instances
from gpucourse.aws.pricing import PriceBook
from tests.unit.aws.cloud import TAGS, ScriptedAccount, listed
from tests.unit.aws.test_instances import described

BOOK = PriceBook(region="us-east-2")
MADE = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
VOLUME = {
    "VolumeId": "vol-1",
    "VolumeType": "gp3",
    "Size": 120,
    "AvailabilityZone": "us-east-2b",
    "CreateTime": MADE,
    "Tags": listed(TAGS),
}
SYSTEM = {
    "FileSystemId": "fs-1",
    "LifeCycleState": "available",
    "SizeInBytes": {"Value": 5 << 30},
    "CreationTime": MADE,
    "Tags": listed(TAGS),
}
GONE = {**SYSTEM, "FileSystemId": "fs-2", "Tags": listed({"Project": "other"})}


def account(*found: dict[str, Any]) -> ScriptedAccount:
    return ScriptedAccount(
        {
            ("ec2", "describe_instances"): {"Reservations": [{"Instances": list(found)}]},
            ("ec2", "describe_volumes"): {"Volumes": [VOLUME]},
            ("efs", "describe_file_systems"): {"FileSystems": [SYSTEM, GONE]},
        }
    )


def test_everything_that_costs_is_charged_since_it_began() -> None:
    found = charges.standing(account(described()), BOOK, stack="s-1")
    assert [(one.item, one.kind, int(one.units)) for one in found] == [
        ("i-0", "instance", 1),
        ("i-0:ipv4", "address", 1),
        ("vol-1", "disk", 120),
        ("fs-1", "storage", 5),
    ]
    assert all(one.since == MADE and (one.stack, one.module) == ("s-1", "3") for one in found)
    hourly = sum((one.units * one.rate.usd_per_hour for one in found), Decimal(0))
    assert f"{hourly:.4f}" == f"{0.526 + 0.005 + 120 * 0.08 / 730 + 5 * 0.30 / 730:.4f}"


def test_spot_is_charged_at_its_zone() -> None:
    found = charges.standing(account(described(InstanceType="g6.xlarge", InstanceLifecycle="spot")), BOOK, stack="s-1")
    assert (found[0].market, found[0].zone, found[0].rate.usd_per_hour) == ("spot", "us-east-2b", Decimal("0.2321"))


def test_a_stopped_instance_costs_its_disk_and_an_ended_one_nothing() -> None:
    assert [one.item for one in charges.standing(account(described("stopped")), BOOK, stack="s-1")] == ["vol-1", "fs-1"]
    assert [one.item for one in charges.standing(account(described("terminated")), BOOK, stack="s-1")] == ["vol-1", "fs-1"]


def test_when_and_why_what_ended_did() -> None:
    said = {"StateTransitionReason": "User initiated (2026-11-21 10:00:00 GMT)", "StateReason": {"Message": "deadline"}}
    found = instances.find(account(described("terminated", **said), described(InstanceId="i-1")), stack="s-1")
    ended = charges.endings(found)
    assert set(ended) == {"i-0", "i-0:ipv4"}
    assert ended["i-0"].ended == MADE + timedelta(hours=1)
    assert ended["i-0"].reason == "deadline"
