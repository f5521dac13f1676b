"""Where the course is in an account, without any list of the regions that were used."""

from __future__ import annotations

import pytest

from gpucourse.aws.everywhere import find_regions_in_use
from gpucourse.aws.session import Account
from gpucourse.errors import CloudUnreachable, GpucourseError
from tests.unit.aws.cloud import TAGS, ScriptedAccount, as_tag_list, error, make_refusal
from tests.unit.aws.test_preflight import EVERYTHING_EMPTY

KNOWN = ("us-east-2", "us-east-1")
TAGGING, VOLUMES = ("resourcegroupstaggingapi", "get_resources"), ("ec2", "describe_volumes")
REFUSED = make_refusal("tag:GetResources")


class Places(ScriptedAccount):
    """An account whose regions differ, besides the known ones: what listing by tag gives there, and what describing volumes."""

    def __init__(self, regions: dict[str, tuple[object, object]]) -> None:
        names = [{"RegionName": name} for name in (*KNOWN, *regions)]
        super().__init__({**EVERYTHING_EMPTY, ("ec2", "describe_regions"): {"Regions": names}, ("ec2", "describe_vpcs"): {}})
        self.regions = regions

    def in_region(self, region: str) -> Account:
        tagged, volumes = self.regions[region]
        place = ScriptedAccount({**self.answers, TAGGING: tagged, VOLUMES: volumes}, region)
        place.calls = self.calls
        return place


def test_find_regions_in_use_asks_the_api_that_lists_by_tag() -> None:
    disk = {"ResourceARN": "arn:aws:ec2:eu-west-1:1:volume/vol-1", "Tags": as_tag_list(TAGS)}
    account = Places({"eu-west-1": ({"ResourceTagMappingList": [disk]}, {}), "ap-south-1": ({}, {})})
    assert find_regions_in_use(account, besides=KNOWN) == (["eu-west-1"], "")
    [filters, _other] = [asked["TagFilters"] for asked in account.list_calls("get_resources")]
    assert filters == [{"Key": "Project", "Values": ["gpucourse"]}]


@pytest.mark.parametrize("trouble", [make_refusal("ec2:DescribeVolumes"), error("AuthFailure"), CloudUnreachable("no answer")])
def test_find_regions_in_use_names_a_region_that_cannot_be_looked_at(trouble: GpucourseError) -> None:
    disk = {"Volumes": [{"VolumeId": "vol-1"}]}
    account = Places({"eu-west-1": (REFUSED, disk), "eu-west-3": (REFUSED, trouble), "eu-north-1": (REFUSED, {})})
    regions, unasked = find_regions_in_use(account, besides=KNOWN)
    assert regions == ["eu-west-1"]
    assert unasked.endswith(": eu-west-3")


@pytest.mark.parametrize("trouble", [make_refusal("ec2:DescribeRegions"), CloudUnreachable("no answer")])
def test_find_regions_in_use_says_that_regions_could_not_be_listed(trouble: GpucourseError) -> None:
    regions, unasked = find_regions_in_use(ScriptedAccount({("ec2", "describe_regions"): trouble}), besides=KNOWN)
    assert regions == []
    assert "could not be listed" in unasked
