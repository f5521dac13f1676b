from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpucourse.aws import sweep
from gpucourse.aws.kinds import ORDER, Step
from gpucourse.errors import CloudUnreachable
from gpucourse.model.cloud import Found
from tests.unit.aws.cloud import TAGS, MotoAccount, ScriptedAccount, error, listed, refused
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


def kinds(found: list[Found]) -> list[str]:
    return [one.kind for one in found]


def test_everything_of_a_lab_is_found_in_the_order_of_removal(moto: MotoAccount, lab: Lab) -> None:
    found = sweep.find(moto, stack="s-1")
    assert kinds(found) == LAB_KINDS
    by_kind = {one.kind: one for one in found}
    assert by_kind["instance"].id == lab.instance
    assert by_kind["mount target"].parent == lab.file_system
    assert all(one.tags["Stack"] == "s-1" and one.region == "us-east-2" and one.seen for one in found)


def test_a_strangers_things_are_not_found(moto: MotoAccount, foreign: Lab) -> None:
    assert sweep.find(moto) == []


def test_stack_course_and_project_are_wider_each(moto: MotoAccount, lab: Lab) -> None:
    make_lab(moto, {**TAGS, "Stack": "s-2"})
    make_lab(moto, {**TAGS, "Stack": "s-3", "Course": "other"})
    assert len(sweep.find(moto, stack="s-1")) == len(LAB_KINDS)
    assert {one.tags["Stack"] for one in sweep.find(moto, course="c0ffee")} == {"s-1", "s-2"}
    assert {one.tags["Stack"] for one in sweep.find(moto)} == {"s-1", "s-2", "s-3"}
    assert sweep.find(moto, stack="s-9") == []


def test_every_region_ever_used_is_looked_at(moto: MotoAccount, lab: Lab) -> None:
    west = moto.in_region("us-west-2")
    assert isinstance(west, MotoAccount)
    west.client("ec2").create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": listed(TAGS)}])
    assert {one.region for one in sweep.find(moto, course="c0ffee")} == {"us-east-2"}
    found = sweep.find(moto, course="c0ffee", regions=["us-west-2", "us-east-2", "us-west-2"])
    assert [one.kind for one in found if one.region == "us-west-2"] == ["VPC"]
    assert len(found) == len(LAB_KINDS) + 1


def test_an_instance_that_has_ended_is_not_there(moto: MotoAccount, lab: Lab) -> None:
    moto.client("ec2").terminate_instances(InstanceIds=[lab.instance])
    assert "instance" not in kinds(sweep.find(moto, stack="s-1"))


def test_each_has_the_command_that_removes_it(moto: MotoAccount, lab: Lab) -> None:
    by_kind = {one.kind: one.remove for one in sweep.find(moto, stack="s-1")}
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
    step = Step("ec2", "delete_key_pair", {"KeyName": "a b; rm -rf ~"})
    assert step.command("us-east-2") == "aws ec2 delete-key-pair --region us-east-2 --key-name 'a b; rm -rf ~'"


def test_what_may_not_be_seen_is_in_the_list_so_that_empty_is_a_proof() -> None:
    account = ScriptedAccount(
        {**EVERYTHING_EMPTY, ("ec2", "describe_vpcs"): {}, ("ec2", "describe_volumes"): refused("ec2:DescribeVolumes")}
    )
    [found] = sweep.find(account, stack="s-1")
    assert (found.kind, found.seen, found.id) == ("volume", False, "unknown")
    assert "ec2:DescribeVolumes" in found.note
    look = "aws ec2 describe-volumes --region us-east-2 --filters Name=tag:Project,Values=gpucourse Name=tag:Stack,Values=s-1"
    assert found.remove == look
    assert "ec2:DescribeVolumes" in found.leftover.id


def test_schedules_and_roles_that_may_not_be_seen_cost_nothing_and_are_left_out() -> None:
    account = ScriptedAccount(
        {
            **EVERYTHING_EMPTY,
            ("ec2", "describe_vpcs"): {},
            ("scheduler", "list_schedule_groups"): refused("scheduler:ListScheduleGroups"),
            ("iam", "list_roles"): refused("iam:ListRoles"),
            ("resourcegroupstaggingapi", "get_resources"): refused("tag:GetResources"),
        }
    )
    assert sweep.find(account, stack="s-1") == []
    assert [(one.kind, one.seen) for one in sweep.find(account, strict=True)] == [("schedule group", False), ("role", False)]


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
        return {"Tags": listed(TAGS)}

    account = ScriptedAccount(
        {
            **EVERYTHING_EMPTY,
            ("ec2", "describe_vpcs"): {},
            ("iam", "list_roles"): {"Roles": [role("another"), role("ours")]},
            ("iam", "list_role_tags"): role_tags,
        }
    )
    assert [found.id for found in sweep.find(account, stack="s-1")] == ["ours"]


def test_a_region_that_does_not_answer_is_an_error_and_not_empty() -> None:
    account = ScriptedAccount(
        {**EVERYTHING_EMPTY, ("ec2", "describe_vpcs"): CloudUnreachable("AWS does not answer", hint="network")}
    )
    with pytest.raises(CloudUnreachable):
        sweep.find(account)


def test_the_tagging_api_adds_only_kinds_that_the_course_does_not_make() -> None:
    arns = ["arn:aws:ec2:us-east-2:1:instance/i-dead", "arn:aws:ec2:us-east-2:1:natgateway/nat-1", "arn:aws:iam::1:role/x"]
    resources = {"ResourceTagMappingList": [{"ResourceARN": arn, "Tags": listed(TAGS)} for arn in arns]}
    account = ScriptedAccount(
        {**EVERYTHING_EMPTY, ("ec2", "describe_vpcs"): {}, ("resourcegroupstaggingapi", "get_resources"): resources}
    )
    [found] = sweep.find(account, stack="s-1")
    assert (found.kind, found.id) == ("other", arns[1])
    assert arns[1] in found.remove


def test_every_kind_has_its_place_in_the_order() -> None:
    assert len(set(ORDER)) == len(ORDER)
    assert ORDER.index("instance") < ORDER.index("mount target") < ORDER.index("security group") < ORDER.index("VPC")
    assert ORDER.index("schedule group") > ORDER.index("VPC")
