from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpucourse.aws import removal, resource_scan, schedule
from gpucourse.errors import CloudThrottled
from gpucourse.model.cloud import CloudResource
from gpucourse.model.event import Event, ResourceEvent
from tests.unit.aws.cloud import TAGS, Clock, MotoAccount, ScriptedAccount, as_tag_list, error, make_expiry, make_refusal
from tests.unit.aws.conftest import IMAGE, Lab
from tests.unit.aws.test_instances import make_instance

REGIONS = ["us-east-2", "us-west-2"]


class Result:
    """The leftovers of a removal, its duration on its clock, and the events that it sent."""

    def __init__(self, account: MotoAccount | ScriptedAccount, things: list[CloudResource]) -> None:
        self.clock, self.events = Clock(), list[ResourceEvent]()
        self.left = removal.remove(account, things, self._watch, patience_s=60.0, sleep=self.clock.sleep, clock=self.clock)

    def _watch(self, event: Event) -> None:
        assert isinstance(event, ResourceEvent)
        self.events.append(event)

    def list_addresses(self, state: str) -> list[str]:
        return [event.address for event in self.events if event.state == state]


def make_thing(kind: str, thing_id: str, **options: Any) -> CloudResource:
    return CloudResource(kind=kind, id=thing_id, region="us-east-2", remove="aws ...", **{"tags": TAGS, **options})


def make_network(*answers: Any) -> ScriptedAccount:
    """Return an account with one VPC of ours. `delete_vpc` returns these answers one after the other, and then repeats the last
    one.
    """
    remaining = list(answers)

    def delete(_parameters: dict[str, Any]) -> Any:
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    holder = {"NetworkInterfaceId": "eni-1", "Description": "of a load balancer"}
    return ScriptedAccount(
        {
            ("ec2", "describe_vpcs"): {"Vpcs": [{"VpcId": "vpc-1", "Tags": as_tag_list(TAGS)}]},
            ("ec2", "delete_vpc"): delete,
            ("ec2", "describe_network_interfaces"): {"NetworkInterfaces": [holder]},
        }
    )


NETWORK = make_thing("VPC", "vpc-1")


def test_remove_takes_a_whole_lab_in_two_regions_and_nothing_else(moto: MotoAccount, lab: Lab, foreign: Lab) -> None:
    ec2 = moto.client("ec2")

    def tag(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": as_tag_list(TAGS)}]

    address = ec2.allocate_address(Domain="vpc", TagSpecifications=tag("elastic-ip"))["AllocationId"]
    ec2.associate_address(AllocationId=address, InstanceId=lab.instance)
    ec2.create_network_interface(SubnetId=lab.subnet, TagSpecifications=tag("network-interface"))
    ec2.request_spot_instances(
        LaunchSpecification={"ImageId": IMAGE, "InstanceType": "g4dn.xlarge", "SubnetId": lab.subnet},
        TagSpecifications=tag("spot-instances-request"),
    )
    moto.client("iam").create_role(
        RoleName="gpucourse-backstop-s-1", Path=schedule.PATH, AssumeRolePolicyDocument="{}", Tags=as_tag_list(TAGS)
    )
    moto.client("scheduler").create_schedule_group(Name="gpucourse-s-1", Tags=as_tag_list(TAGS))
    moto.in_region("us-west-2").client("ec2").create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tag("vpc"))

    things = resource_scan.find(moto, course="c0ffee", regions=REGIONS)
    kinds = {thing.kind for thing in things}
    assert kinds >= {"elastic address", "network interface", "spot request", "schedule group", "role"}
    result = Result(moto, things)
    assert result.left == []
    assert sorted(result.list_addresses("done")) == sorted(f"{thing.region} {thing.kind} {thing.id}" for thing in things)
    assert resource_scan.find(moto, course="c0ffee", regions=REGIONS) == []
    assert Result(moto, things).left == [], "what somebody else removed meanwhile is done"

    assert foreign.vpc in {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]}
    [instance] = ec2.describe_instances(InstanceIds=[foreign.instance])["Reservations"][0]["Instances"]
    assert instance["State"]["Name"] == "running"
    assert len(moto.client("efs").describe_file_systems()["FileSystems"]) == 1


def test_remove_deletes_two_groups_that_name_each_other(moto: MotoAccount, lab: Lab) -> None:
    ec2 = moto.client("ec2")
    tagged = [{"ResourceType": "security-group", "Tags": as_tag_list(TAGS)}]
    second_group = ec2.create_security_group(VpcId=lab.vpc, GroupName="b", Description="d", TagSpecifications=tagged)["GroupId"]
    for group, peer in ((lab.group, second_group), (second_group, lab.group)):
        rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": peer}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    holders: list[str] = []

    def note_held(operation: str) -> None:
        if operation == "delete_security_group":
            rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
            holders.extend(rule["GroupId"] for rule in rules if rule.get("ReferencedGroupInfo"))

    moto.before = note_held
    groups = [make_thing("security group", group) for group in (lab.group, second_group)]
    Result(moto, groups)
    assert holders == []


def test_remove_keeps_the_backstop_and_waits_for_nothing_when_an_instance_stays(moto: MotoAccount, lab: Lab) -> None:
    moto.client("scheduler").create_schedule_group(Name="gpucourse-s-1", Tags=as_tag_list(TAGS))
    moto.fail = [("terminate_instances", make_refusal("ec2:TerminateInstances"))]
    moto.fail += [("delete_volume", error("VolumeInUse", "in use")) for _ in range(3)]
    result = Result(moto, resource_scan.find(moto, stack="s-1"))
    assert {"instance", "volume", "schedule group"} <= {thing.kind for thing in result.left}
    assert result.clock.now == 0
    assert moto.client("scheduler").get_schedule_group(Name="gpucourse-s-1")


@pytest.mark.parametrize(
    "problem",
    [error("DependencyViolation", "still held"), error("InternalError"), CloudThrottled("slower", kind="throttle")],
    ids=["held", "failing", "throttled"],
)
def test_remove_tries_again_after_an_error_that_passes(problem: Exception) -> None:
    result = Result(make_network(problem, problem, {}), [NETWORK])
    assert result.left == []
    assert result.clock.now == 2 * removal.PAUSE_S
    assert len(result.list_addresses("progress")) == 2


def test_remove_names_what_holds_a_network_when_its_patience_ends() -> None:
    result = Result(make_network(error("DependencyViolation", "has dependencies")), [NETWORK])
    [thing] = result.left
    assert "still depends on it" in thing.note
    assert "eni-1 (of a load balancer)" in thing.note
    assert 60 <= result.clock.now <= 60 + removal.PAUSE_S
    assert result.list_addresses("failed") == ["us-east-2 VPC vpc-1"]


@pytest.mark.parametrize(
    ("problem", "words"), [(make_refusal("ec2:DeleteVpc"), "ec2:DeleteVpc"), (make_expiry(), "have expired")]
)
def test_remove_reports_a_refusal_at_once_and_goes_on(problem: Exception, words: str) -> None:
    account = make_network(problem)
    account.answers["ec2", "describe_subnets"] = {"Subnets": [{"SubnetId": "subnet-1", "Tags": as_tag_list(TAGS)}]}
    account.answers["ec2", "delete_subnet"] = {}
    result = Result(account, [NETWORK, make_thing("subnet", "subnet-1")])
    [thing] = result.left
    assert (thing.kind, words in thing.note) == ("VPC", True)
    assert result.clock.now == 0
    assert result.list_addresses("done") == ["us-east-2 subnet subnet-1"]


class LingeringStorage(ScriptedAccount):
    """List shared storage as `deleting` three more times after it was removed."""

    looks_left = 3

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        state = "deleting" if self.list_calls("delete_file_system") else "available"
        if state == "deleting":
            self.looks_left -= 1
        if self.looks_left >= 0:
            yield {"FileSystemId": "fs-1", "LifeCycleState": state, "Tags": as_tag_list(TAGS)}


def test_remove_waits_for_storage_that_is_being_deleted() -> None:
    account = LingeringStorage({("efs", "delete_file_system"): {}})
    result = Result(account, [make_thing("file system", "fs-1")])
    assert result.left == []
    assert result.clock.now == 3 * removal.PAUSE_S


def test_remove_leaves_an_instance_that_does_not_end_in_time() -> None:
    account = ScriptedAccount(
        {
            ("ec2", "describe_instances"): {"Reservations": [{"Instances": [make_instance()]}]},
            ("ec2", "terminate_instances"): {},
        }
    )
    result = Result(account, [make_thing("instance", "i-0")])
    assert [thing.note for thing in result.left] == ["its removal was requested, but it still exists"]
    assert result.clock.now >= 60


@pytest.mark.parametrize(
    ("thing", "note"),
    [
        (make_thing("instance", "i-9", tags={"Name": "mine"}), "left alone"),
        (make_thing("other", "arn:aws:ec2:us-east-2:1:natgateway/nat-1"), "does not create"),
        (make_thing("volume", "unknown", seen=False, note="not allowed to look"), "not allowed to look"),
    ],
    ids=["a stranger's", "of another kind", "not seen"],
)
def test_remove_does_not_touch_what_is_not_ours(thing: CloudResource, note: str) -> None:
    account = ScriptedAccount({})
    [remaining] = Result(account, [thing]).left
    assert (remaining.id, remaining.remove) == (thing.id, "aws ...")
    assert note in remaining.note
    assert account.calls == []


def test_remove_does_not_touch_what_no_longer_has_our_tags() -> None:
    account = ScriptedAccount({("ec2", "describe_volumes"): {"Volumes": []}})
    assert Result(account, [replace(NETWORK, kind="volume", id="vol-1")]).left == []
    assert {"Name": "tag:Stack", "Values": ["s-1"]} in account.list_calls("describe_volumes")[0]["Filters"]
