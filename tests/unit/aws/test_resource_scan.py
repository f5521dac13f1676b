from __future__ import annotations

from typing import Any

import pytest

from gpucourse.aws import resource_scan
from gpucourse.aws.resource_scan import find_regions_in_use
from gpucourse.aws.session import Account
from gpucourse.errors import CloudUnreachable, CredentialsError, GpucourseError
from gpucourse.model.cloud import CloudResource
from tests.unit.aws.cloud import TAGS, MotoAccount, ScriptedAccount, as_tag_list, error, make_refusal
from tests.unit.aws.conftest import Lab
from tests.unit.aws.test_preflight import EVERYTHING_EMPTY

LAB_KINDS = [
    "instance",
    "mount target",
    "file system",
    "volume",
    "key pair",
    "security group",
    "route table",
    "subnet",
    "internet gateway",
    "VPC",
]


def make_account(**changes: Any) -> ScriptedAccount:
    """Return an empty account. `changed`: other answers, by operation."""
    answers = {**EVERYTHING_EMPTY, ("ec2", "describe_vpcs"): {}}
    return ScriptedAccount(answers | {key: changes[key[1]] for key in answers if key[1] in changes})


def kinds(things: list[CloudResource]) -> list[str]:
    return [thing.kind for thing in things]


def test_find_lists_a_lab_in_the_order_of_removal_with_commands(moto: MotoAccount, lab: Lab, foreign: Lab) -> None:
    """Find our lab, and nothing of another owner's."""
    things = resource_scan.find(moto)
    assert kinds(things) == LAB_KINDS
    assert all(thing.tags["Stack"] == "s-1" and thing.region == "us-east-2" and thing.seen for thing in things)
    by_kind = {thing.kind: thing for thing in things}
    assert by_kind["instance"].id == lab.instance
    assert by_kind["mount target"].parent == lab.file_system
    commands = {thing.kind: thing.remove for thing in things}
    assert commands["instance"] == f"aws ec2 terminate-instances --region us-east-2 --instance-ids {lab.instance}"
    assert commands["key pair"] == "aws ec2 delete-key-pair --region us-east-2 --key-name s-1"
    assert commands["VPC"] == f"aws ec2 delete-vpc --region us-east-2 --vpc-id {lab.vpc}"
    assert commands["file system"] == f"aws efs delete-file-system --region us-east-2 --file-system-id {lab.file_system}"
    detach, delete = commands["internet gateway"].split(" && ")
    assert detach.startswith("aws ec2 detach-internet-gateway --region us-east-2 --internet-gateway-id igw-")
    assert f"--vpc-id {lab.vpc}" in detach
    assert delete.startswith("aws ec2 delete-internet-gateway")
    assert "disassociate-route-table --region us-east-2 --association-id rtbassoc-" in commands["route table"]
    moto.client("ec2").terminate_instances(InstanceIds=[lab.instance])
    assert "instance" not in kinds(resource_scan.find(moto))


def test_find_is_wider_by_stack_by_course_and_by_project(moto: MotoAccount) -> None:
    def make_network(region: str, stack: str, course: str) -> None:
        tags = [{"ResourceType": "vpc", "Tags": as_tag_list({**TAGS, "Stack": stack, "Course": course})}]
        moto.in_region(region).client("ec2").create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tags)

    for region, stack, course in (("us-east-2", "s-1", "c"), ("us-east-2", "s-2", "c"), ("us-east-2", "s-3", "other")):
        make_network(region, stack, course)
    make_network("us-west-2", "s-4", "c")

    def find(**filters: Any) -> list[str]:
        return [thing.tags["Stack"] for thing in resource_scan.find(moto, **filters)]

    assert find(stack="s-1") == ["s-1"]
    assert sorted(find(course="c")) == ["s-1", "s-2"]
    assert sorted(find()) == ["s-1", "s-2", "s-3"]
    assert find(stack="s-9") == []
    assert sorted(find(course="c", regions=["us-west-2", "us-east-2", "us-west-2"])) == ["s-1", "s-2", "s-4"]


def test_find_hides_nothing_of_other_regions_when_one_was_disabled() -> None:
    """Scan an account with a disabled region. AWS rejects the credentials there, but continues to bill its resources."""
    account = make_account(describe_volumes={"Volumes": [{"VolumeId": "vol-1", "Tags": as_tag_list(TAGS)}]})

    def refuse_in_the_west(region: str) -> ScriptedAccount:
        networks: object = CredentialsError("not here") if region == "us-west-2" else {}
        return ScriptedAccount({**account.answers, ("ec2", "describe_vpcs"): networks}, region)

    account.in_region = refuse_in_the_west  # type: ignore[method-assign]
    things = resource_scan.find(account, stack="s-1", regions=["us-west-2", "us-east-2"])
    [shut] = [thing for thing in things if not thing.seen]
    assert "region does not accept these credentials" in shut.note
    assert "--region us-west-2 --filters Name=tag:Project,Values=gpucourse" in shut.remove
    assert {thing.region for thing in things if thing.kind == "volume"} == {"us-east-2", "us-west-2"}
    with pytest.raises(CredentialsError):
        resource_scan.find(account, stack="s-1", regions=["us-west-2"])


def test_find_lists_what_may_not_be_seen_so_that_empty_is_a_proof() -> None:
    account = make_account(describe_volumes=make_refusal("ec2:DescribeVolumes"))
    [things] = resource_scan.find(account, stack="s-1")
    assert (things.kind, things.seen, things.id) == ("volume", False, "unknown")
    assert "ec2:DescribeVolumes" in things.note
    look = "aws ec2 describe-volumes --region us-east-2 --filters Name=tag:Project,Values=gpucourse Name=tag:Stack,Values=s-1"
    assert things.remove == look
    assert "ec2:DescribeVolumes" in things.leftover.id


def test_find_leaves_out_schedules_and_roles_that_may_not_be_seen() -> None:
    account = make_account(
        list_schedule_groups=make_refusal("scheduler:ListScheduleGroups"),
        list_roles=make_refusal("iam:ListRoles"),
        get_resources=make_refusal("tag:GetResources"),
    )
    assert resource_scan.find(account, stack="s-1") == []
    assert [(thing.kind, thing.seen) for thing in resource_scan.find(account, strict=True)] == [
        ("schedule group", False),
        ("role", False),
    ]


def test_find_fails_when_a_region_does_not_answer() -> None:
    account = make_account(describe_vpcs=CloudUnreachable("AWS does not answer", hint="network"))
    with pytest.raises(CloudUnreachable):
        resource_scan.find(account)


def test_find_takes_from_the_tagging_api_only_kinds_that_the_course_does_not_make() -> None:
    arns = ["arn:aws:ec2:us-east-2:1:instance/i-dead", "arn:aws:ec2:us-east-2:1:natgateway/nat-1", "arn:aws:iam::1:role/x"]
    resources = {"ResourceTagMappingList": [{"ResourceARN": arn, "Tags": as_tag_list(TAGS)} for arn in arns]}
    account = make_account(get_resources=resources)
    [things] = resource_scan.find(account, stack="s-1")
    assert (things.kind, things.id) == ("other", arns[1])
    assert arns[1] in things.remove


KNOWN = ("us-east-2", "us-east-1")
TAGGING, VOLUMES = ("resourcegroupstaggingapi", "get_resources"), ("ec2", "describe_volumes")
REFUSED = make_refusal("tag:GetResources")


class Places(ScriptedAccount):
    """An account whose regions differ, besides the known ones: the answers to listing by tag, and to describing volumes."""

    def __init__(self, regions: dict[str, tuple[object, object]]) -> None:
        names = [{"RegionName": name} for name in (*KNOWN, *regions)]
        super().__init__({**EVERYTHING_EMPTY, ("ec2", "describe_regions"): {"Regions": names}, ("ec2", "describe_vpcs"): {}})
        self.regions = regions

    def in_region(self, region: str) -> Account:
        tagged, volumes = self.regions[region]
        place = ScriptedAccount({**self.answers, TAGGING: tagged, VOLUMES: volumes}, region)
        place.calls = self.calls
        return place


@pytest.mark.parametrize("trouble", [make_refusal("ec2:DescribeVolumes"), error("AuthFailure"), CloudUnreachable("no answer")])
def test_find_regions_in_use_names_a_region_that_cannot_be_looked_at(trouble: GpucourseError) -> None:
    disk = {"Volumes": [{"VolumeId": "vol-1"}]}
    account = Places({"eu-west-1": (REFUSED, disk), "eu-west-3": (REFUSED, trouble), "eu-north-1": (REFUSED, {})})
    regions, unchecked = find_regions_in_use(account, known_regions=KNOWN)
    assert regions == ["eu-west-1"]
    assert unchecked.endswith(": eu-west-3")


@pytest.mark.parametrize("trouble", [make_refusal("ec2:DescribeRegions"), CloudUnreachable("no answer")])
def test_find_regions_in_use_says_that_regions_could_not_be_listed(trouble: GpucourseError) -> None:
    regions, unchecked = find_regions_in_use(ScriptedAccount({("ec2", "describe_regions"): trouble}), known_regions=KNOWN)
    assert regions == []
    assert "could not be listed" in unchecked
