from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpucourse.aws import resource_scan
from gpucourse.aws.kinds import ORDER, ApiCall
from gpucourse.errors import CloudUnreachable, CredentialsError
from gpucourse.model.cloud import CloudResource
from tests.unit.aws.cloud import TAGS, MotoAccount, ScriptedAccount, as_tag_list, error, make_refusal
from tests.unit.aws.conftest import Lab, make_lab
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


def kinds(things: list[CloudResource]) -> list[str]:
    return [thing.kind for thing in things]


def test_everything_of_a_lab_is_found_in_the_order_of_removal(moto: MotoAccount, lab: Lab) -> None:
    things = resource_scan.find(moto, stack="s-1")
    assert kinds(things) == LAB_KINDS
    by_kind = {thing.kind: thing for thing in things}
    assert by_kind["instance"].id == lab.instance
    assert by_kind["mount target"].parent == lab.file_system
    assert all(thing.tags["Stack"] == "s-1" and thing.region == "us-east-2" and thing.seen for thing in things)


def test_a_strangers_things_are_not_found(moto: MotoAccount, foreign: Lab) -> None:
    assert resource_scan.find(moto) == []


def test_stack_course_and_project_are_wider_each(moto: MotoAccount, lab: Lab) -> None:
    make_lab(moto, {**TAGS, "Stack": "s-2"})
    make_lab(moto, {**TAGS, "Stack": "s-3", "Course": "other"})
    assert len(resource_scan.find(moto, stack="s-1")) == len(LAB_KINDS)
    assert {thing.tags["Stack"] for thing in resource_scan.find(moto, course="c0ffee")} == {"s-1", "s-2"}
    assert {thing.tags["Stack"] for thing in resource_scan.find(moto)} == {"s-1", "s-2", "s-3"}
    assert resource_scan.find(moto, stack="s-9") == []


def test_every_region_ever_used_is_looked_at(moto: MotoAccount, lab: Lab) -> None:
    west = moto.in_region("us-west-2")
    assert isinstance(west, MotoAccount)
    west.client("ec2").create_vpc(
        CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": as_tag_list(TAGS)}]
    )
    assert {thing.region for thing in resource_scan.find(moto, course="c0ffee")} == {"us-east-2"}
    things = resource_scan.find(moto, course="c0ffee", regions=["us-west-2", "us-east-2", "us-west-2"])
    assert [thing.kind for thing in things if thing.region == "us-west-2"] == ["VPC"]
    assert len(things) == len(LAB_KINDS) + 1


def test_a_region_that_was_disabled_hides_nothing_of_the_others(moto: MotoAccount, lab: Lab) -> None:
    """AWS closes a region to the credentials and continues to bill what it holds."""
    moto.fail.append(("describe_vpcs", CredentialsError("not here")))
    things = resource_scan.find(moto, stack="s-1", regions=["us-west-2", "us-east-2"])
    [shut] = [thing for thing in things if not thing.seen]
    assert "region does not accept these credentials" in shut.note
    assert f"--region {shut.region} --filters Name=tag:Project,Values=gpucourse" in shut.remove
    assert {"instance", "file system"} <= {thing.kind for thing in things if thing.seen}
    moto.fail.append(("describe_vpcs", CredentialsError("not here")))
    with pytest.raises(CredentialsError):
        resource_scan.find(moto, stack="s-1", regions=["us-east-2"])


def test_an_instance_that_has_ended_is_not_there(moto: MotoAccount, lab: Lab) -> None:
    moto.client("ec2").terminate_instances(InstanceIds=[lab.instance])
    assert "instance" not in kinds(resource_scan.find(moto, stack="s-1"))


def test_each_has_the_command_that_removes_it(moto: MotoAccount, lab: Lab) -> None:
    by_kind = {thing.kind: thing.remove for thing in resource_scan.find(moto, stack="s-1")}
    assert by_kind["instance"] == f"aws ec2 terminate-instances --region us-east-2 --instance-ids {lab.instance}"
    assert by_kind["key pair"] == "aws ec2 delete-key-pair --region us-east-2 --key-name s-1"
    assert by_kind["VPC"] == f"aws ec2 delete-vpc --region us-east-2 --vpc-id {lab.vpc}"
    assert by_kind["file system"] == f"aws efs delete-file-system --region us-east-2 --file-system-id {lab.file_system}"
    detach, delete = by_kind["internet gateway"].split(" && ")
    assert detach.startswith("aws ec2 detach-internet-gateway --region us-east-2 --internet-gateway-id igw-")
    assert f"--vpc-id {lab.vpc}" in detach
    assert delete.startswith("aws ec2 delete-internet-gateway")
    assert "disassociate-route-table --region us-east-2 --association-id rtbassoc-" in by_kind["route table"]


def test_a_command_is_quoted_for_the_shell() -> None:
    step = ApiCall("ec2", "delete_key_pair", {"KeyName": "a b; rm -rf ~"})
    assert step.command("us-east-2") == "aws ec2 delete-key-pair --region us-east-2 --key-name 'a b; rm -rf ~'"


def test_what_may_not_be_seen_is_in_the_list_so_that_empty_is_a_proof() -> None:
    account = ScriptedAccount(
        {**EVERYTHING_EMPTY, ("ec2", "describe_vpcs"): {}, ("ec2", "describe_volumes"): make_refusal("ec2:DescribeVolumes")}
    )
    [things] = resource_scan.find(account, stack="s-1")
    assert (things.kind, things.seen, things.id) == ("volume", False, "unknown")
    assert "ec2:DescribeVolumes" in things.note
    look = "aws ec2 describe-volumes --region us-east-2 --filters Name=tag:Project,Values=gpucourse Name=tag:Stack,Values=s-1"
    assert things.remove == look
    assert "ec2:DescribeVolumes" in things.leftover.id


def test_schedules_and_roles_that_may_not_be_seen_are_left_out() -> None:
    account = ScriptedAccount(
        {
            **EVERYTHING_EMPTY,
            ("ec2", "describe_vpcs"): {},
            ("scheduler", "list_schedule_groups"): make_refusal("scheduler:ListScheduleGroups"),
            ("iam", "list_roles"): make_refusal("iam:ListRoles"),
            ("resourcegroupstaggingapi", "get_resources"): make_refusal("tag:GetResources"),
        }
    )
    assert resource_scan.find(account, stack="s-1") == []
    assert [(thing.kind, thing.seen) for thing in resource_scan.find(account, strict=True)] == [
        ("schedule group", False),
        ("role", False),
    ]


def test_another_labs_role_that_goes_while_one_looks_is_not_in_the_way() -> None:
    def role(name: str) -> dict[str, object]:
        when = datetime(2026, 11, 21, tzinfo=UTC)
        return {
            "Path": "/gpucourse/",
            "RoleName": name,
            "RoleId": "AROA" + "0" * 16,
            "Arn": f"arn:{name}" + "x" * 20,
            "CreateDate": when,
        }

    def role_tags(asked: dict[str, object]) -> dict[str, object]:
        if asked["RoleName"] == "another":
            raise error("NoSuchEntity", "Role another not found")
        return {"Tags": as_tag_list(TAGS)}

    account = ScriptedAccount(
        {
            **EVERYTHING_EMPTY,
            ("ec2", "describe_vpcs"): {},
            ("iam", "list_roles"): {"Roles": [role("another"), role("ours")]},
            ("iam", "list_role_tags"): role_tags,
        }
    )
    assert [thing.id for thing in resource_scan.find(account, stack="s-1")] == ["ours"]


def test_a_region_that_does_not_answer_is_an_error_and_not_empty() -> None:
    account = ScriptedAccount(
        {**EVERYTHING_EMPTY, ("ec2", "describe_vpcs"): CloudUnreachable("AWS does not answer", hint="network")}
    )
    with pytest.raises(CloudUnreachable):
        resource_scan.find(account)


def test_the_tagging_api_adds_only_kinds_that_the_course_does_not_make() -> None:
    arns = ["arn:aws:ec2:us-east-2:1:instance/i-dead", "arn:aws:ec2:us-east-2:1:natgateway/nat-1", "arn:aws:iam::1:role/x"]
    resources = {"ResourceTagMappingList": [{"ResourceARN": arn, "Tags": as_tag_list(TAGS)} for arn in arns]}
    account = ScriptedAccount(
        {**EVERYTHING_EMPTY, ("ec2", "describe_vpcs"): {}, ("resourcegroupstaggingapi", "get_resources"): resources}
    )
    [things] = resource_scan.find(account, stack="s-1")
    assert (things.kind, things.id) == ("other", arns[1])
    assert arns[1] in things.remove


def test_every_kind_has_its_place_in_the_order() -> None:
    assert len(set(ORDER)) == len(ORDER)
    assert ORDER.index("instance") < ORDER.index("mount target") < ORDER.index("security group") < ORDER.index("VPC")
    assert ORDER.index("schedule group") > ORDER.index("VPC")
