"""Where the course is in an account, without any list of the regions that were used."""

from __future__ import annotations

import pytest

from gpucourse.aws.everywhere import find_regions_in_use
from gpucourse.aws.session import Account
from gpucourse.errors import CloudUnreachable, GpucourseError
from tests.unit.aws.cloud import TAGS, MotoAccount, ScriptedAccount, as_tag_list, error, make_refusal
from tests.unit.aws.conftest import make_lab
from tests.unit.aws.test_preflight import EVERYTHING_EMPTY

KNOWN = ("us-east-2", "us-east-1")


class Places(ScriptedAccount):
    """An account whose regions differ: what describing volumes gives there, where listing by tag is refused."""

    volumes: dict[str, object]

    def in_region(self, region: str) -> Account:
        tagged = make_refusal("tag:GetResources")
        by_tag = {("resourcegroupstaggingapi", "get_resources"): tagged, ("ec2", "describe_volumes"): self.volumes[region]}
        return ScriptedAccount({**self.answers, **by_tag}, region)


def places(**volumes: object) -> Places:
    """Regions by their volumes (underscores for dashes), besides the known ones."""
    by_name = {name.replace("_", "-"): answer for name, answer in volumes.items()}
    names = [{"RegionName": name} for name in (*KNOWN, *by_name)]
    account = Places({**EVERYTHING_EMPTY, ("ec2", "describe_regions"): {"Regions": names}, ("ec2", "describe_vpcs"): {}})
    account.volumes = by_name
    return account


def test_a_region_that_nobody_remembers_is_found_by_what_stands_there(moto: MotoAccount) -> None:
    for region, tags in (("eu-west-1", TAGS), ("ap-south-1", {})):
        place = moto.in_region(region)
        assert isinstance(place, MotoAccount)
        make_lab(place, tags)
    storage = moto.in_region("sa-east-1").client("efs")
    storage.create_file_system(CreationToken="lost", Tags=as_tag_list(TAGS))
    assert find_regions_in_use(moto, besides=KNOWN) == (["eu-west-1", "sa-east-1"], "")


def test_what_is_known_already_is_not_asked() -> None:
    account = places()
    assert find_regions_in_use(account, besides=KNOWN) == ([], "")


@pytest.mark.parametrize("trouble", [make_refusal("ec2:DescribeVolumes"), error("AuthFailure"), CloudUnreachable("no answer")])
def test_a_region_that_does_not_let_us_look_is_named(trouble: GpucourseError) -> None:
    disk = {"Volumes": [{"VolumeId": "vol-1"}]}
    regions, unasked = find_regions_in_use(places(eu_west_1=disk, eu_west_3=trouble, eu_north_1={}), besides=KNOWN)
    assert regions == ["eu-west-1"]
    assert unasked.endswith(": eu-west-3")


@pytest.mark.parametrize("trouble", [make_refusal("ec2:DescribeRegions"), CloudUnreachable("no answer")])
def test_a_list_of_regions_that_cannot_be_had_is_told(trouble: GpucourseError) -> None:
    account = ScriptedAccount({("ec2", "describe_regions"): trouble})
    regions, unasked = find_regions_in_use(account, besides=KNOWN)
    assert regions == []
    assert "could not be listed" in unasked
