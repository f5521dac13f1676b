from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from gpucourse.aws import offerings
from gpucourse.aws.failures import classify
from gpucourse.aws.offerings import first_attempt, instance_type, instance_types, next_attempt, type_for
from gpucourse.errors import UnknownName, UsageError
from gpucourse.model.cloud import Failure, Offers, Placement, Zone
from tests.unit.aws.cloud import ScriptedAccount

NO_ROOM = classify("InsufficientInstanceCapacity", "no room")
NOT_HERE = classify("Unsupported", "not here")


def test_the_table_knows_what_the_course_takes() -> None:
    kind = instance_type("g4dn.2xlarge")
    assert (kind.vcpus, kind.gpus, kind.gpu, kind.vram_mib) == (8, 1, "T4", 16384)
    assert kind.network_gbps == Decimal(10)
    assert kind.quota == {"on-demand": "L-DB2E81BA", "spot": "L-3819A6DF"}
    assert instance_type("p5.4xlarge").quota == {"on-demand": "L-417A185B", "spot": "L-C4BD4855"}
    assert instance_type("t3.medium").quota == {"on-demand": "L-1216C47A", "spot": "L-34B43A08"}
    assert not instance_type("t3.medium").cluster_group


def test_every_type_has_its_quota_and_makes_sense() -> None:
    assert len(instance_types()) > 50
    for kind in instance_types().values():
        assert kind.vcpus > 0
        assert set(kind.quota) == {"on-demand", "spot"}
        assert kind.burst_gbps >= kind.network_gbps
        assert bool(kind.gpu) == (not kind.name.startswith("t3."))


@pytest.mark.parametrize(
    ("gpu", "size", "name"),
    [
        ("t4", "xlarge", "g4dn.xlarge"),
        ("T4", "2xlarge", "g4dn.2xlarge"),
        ("l4", "xlarge", "g6.xlarge"),
        ("a10g", "xlarge", "g5.xlarge"),
        ("l40s", "xlarge", "g6e.xlarge"),
        ("h100", "xlarge", "p5.4xlarge"),
    ],
)
def test_a_gpu_by_its_name(gpu: str, size: str, name: str) -> None:
    assert type_for(gpu, size).name == name


def test_v100_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="AWS retired"):
        type_for("v100")
    with pytest.raises(UsageError, match=r"retired p3\.2xlarge"):
        instance_type("p3.2xlarge")


def test_unknown_names_show_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean g4dn\.xlarge"):
        instance_type("g4n.xlarge")
    with pytest.raises(UnknownName, match="l40s"):
        type_for("l40")


def zone(name: str, kind: str = "availability-zone") -> dict[str, Any]:
    return {"ZoneName": name, "ZoneId": f"id-{name}", "ZoneType": kind}


def test_local_zones_and_offers_elsewhere_do_not_count() -> None:
    account = ScriptedAccount(
        {
            ("ec2", "describe_availability_zones"): {"AvailabilityZones": [zone("us-east-2b"), zone("us-east-2a")]},
            ("ec2", "describe_instance_type_offerings"): {
                "InstanceTypeOfferings": [
                    {"InstanceType": "g4dn.xlarge", "Location": "us-east-2a"},
                    {"InstanceType": "g4dn.xlarge", "Location": "us-east-2b"},
                    {"InstanceType": "t3.medium", "Location": "us-east-2b"},
                    {"InstanceType": "g4dn.xlarge", "Location": "us-east-2-chi-1a"},
                ]
            },
        }
    )
    offer_list = offerings.offers(account, ["t3.medium", "g4dn.xlarge", "g4dn.xlarge"])
    assert offer_list.zones == (Zone(name="us-east-2a", id="id-us-east-2a"), Zone(name="us-east-2b", id="id-us-east-2b"))
    assert offer_list.by_type["g4dn.xlarge"] == {"us-east-2a", "us-east-2b"}
    assert offer_list.find_common_zones() == ("us-east-2b",)
    assert offer_list.find_common_zones(frozenset({"g4dn.xlarge"})) == ("us-east-2a", "us-east-2b")
    asked = {
        tag_filter["Name"]: tag_filter["Values"]
        for tag_filter in account.list_calls("describe_availability_zones")[0]["Filters"]
    }
    assert asked["zone-type"] == ["availability-zone"]
    assert asked["opt-in-status"] == ["opt-in-not-required"]


OFFERS = Offers(
    region="us-east-2",
    by_type={
        "g4dn.xlarge": frozenset({"us-east-2a", "us-east-2b", "us-east-2c"}),
        "g6.xlarge": frozenset({"us-east-2b"}),
        "t3.medium": frozenset({"us-east-2b", "us-east-2c"}),
    },
    zones=tuple(Zone(name=f"us-east-2{letter}", id=f"use2-az{letter}") for letter in "abc"),
)


def walk(failure: Failure, allowed: list[str], with_types: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Every try that is made when each one fails in the same way."""
    tried: list[tuple[Placement, Failure]] = []
    attempt = first_attempt(OFFERS, allowed[0], with_types=with_types)
    while attempt is not None:
        tried.append((attempt, failure))
        assert len(tried) < 20
        attempt = next_attempt(OFFERS, tried, allowed=allowed, with_types=with_types)
    return [(place.zone[-1], place.instance_type) for place, _failure in tried]


def test_zones_first_then_the_sibling_type_then_no_more() -> None:
    expected = [("a", "g4dn.xlarge"), ("b", "g4dn.xlarge"), ("c", "g4dn.xlarge"), ("b", "g6.xlarge")]
    assert walk(NO_ROOM, ["g4dn.xlarge", "g6.xlarge"]) == expected
    assert walk(NOT_HERE, ["g4dn.xlarge"]) == expected[:3]


def test_a_head_must_stand_in_the_same_zone() -> None:
    assert walk(NO_ROOM, ["g4dn.xlarge"], ("t3.medium",)) == [("b", "g4dn.xlarge"), ("c", "g4dn.xlarge")]


@pytest.mark.parametrize("code", ["VcpuLimitExceeded", "UnauthorizedOperation", "PendingVerification", "Surprise"])
def test_any_other_failure_ends_it_at_once(code: str) -> None:
    assert walk(classify(code), ["g4dn.xlarge", "g6.xlarge"]) == [("a", "g4dn.xlarge")]


def test_a_zone_that_aws_names_comes_next() -> None:
    asked = classify(
        "InsufficientInstanceCapacity", "You can currently get g4dn.xlarge capacity by ... or choosing us-east-2c, us-east-2d."
    )
    first = Placement(zone="us-east-2a", instance_type="g4dn.xlarge")
    attempt = next_attempt(OFFERS, [(first, asked)], allowed=["g4dn.xlarge"])
    assert attempt == Placement(zone="us-east-2c", instance_type="g4dn.xlarge")


def test_nothing_to_try_where_no_zone_offers_it() -> None:
    assert first_attempt(OFFERS, "g5.xlarge") is None
