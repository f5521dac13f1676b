from __future__ import annotations

from typing import Any

import pytest

from gpucourse.aws import offerings
from gpucourse.aws.offerings import instance_type, type_for, validate_region
from gpucourse.errors import UnknownName, UsageError
from tests.unit.aws.cloud import ScriptedAccount


@pytest.mark.parametrize(
    ("gpu", "size", "name"),
    [
        ("t4", "xlarge", "g4dn.xlarge"),
        ("T4", "2xlarge", "g4dn.2xlarge"),
        ("l40s", "xlarge", "g6e.xlarge"),
        ("h100", "xlarge", "p5.4xlarge"),
    ],
)
def test_type_for_finds_a_gpu_by_its_name(gpu: str, size: str, name: str) -> None:
    assert type_for(gpu, size).name == name


def test_type_for_refuses_a_v100_with_the_reason() -> None:
    with pytest.raises(UsageError, match="AWS retired"):
        type_for("v100")
    with pytest.raises(UsageError, match=r"retired p3\.2xlarge"):
        instance_type("p3.2xlarge")


def test_instance_type_and_type_for_show_near_names() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean g4dn\.xlarge"):
        instance_type("g4n.xlarge")
    with pytest.raises(UnknownName, match="l40s"):
        type_for("l40")


def zone(name: str, kind: str = "availability-zone") -> dict[str, Any]:
    return {"ZoneName": name, "ZoneId": f"id-{name}", "ZoneType": kind}


def test_zones_ignore_local_zones_and_other_places() -> None:
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
    assert offer_list.zones == ("us-east-2a", "us-east-2b")
    assert offer_list.by_type["g4dn.xlarge"] == {"us-east-2a", "us-east-2b"}
    call = {
        tag_filter["Name"]: tag_filter["Values"]
        for tag_filter in account.list_calls("describe_availability_zones")[0]["Filters"]
    }
    assert call["zone-type"] == ["availability-zone"]
    assert call["opt-in-status"] == ["opt-in-not-required"]


@pytest.mark.parametrize(
    ("region", "complaint"),
    [
        ("us-east-2", ""),
        ("xx-new-9", ""),  # AWS may have regions that boto3 does not know yet
        ("frankfurt", "'frankfurt' is not the name of an AWS region"),
        ("us-gov-west-1", "us-gov-west-1 is a region of AWS's partition aws-us-gov; the course has only prices"),
    ],
)
def test_validate_region_refuses_other_words_and_other_partitions(region: str, complaint: str) -> None:
    if not complaint:
        assert validate_region(region) == region
        return
    with pytest.raises(UsageError, match=complaint):
        validate_region(region)
