from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpucourse.aws import removal, resource_scan, schedule
from gpucourse.errors import CloudThrottled
from gpucourse.model.cloud import CloudResource
from gpucourse.model.event import Event, ResourceEvent, ignore_event
from tests.parts import need_module
from tests.unit.aws.cloud import TAGS, MotoAccount, as_tag_list, error, make_expiry, make_refusal
from tests.unit.aws.conftest import IMAGE, Lab
from tests.unit.aws.test_console import Clock


def remove(
    account: MotoAccount, things: list[CloudResource], patience_s: float = 60.0
) -> tuple[list[CloudResource], Clock, list[ResourceEvent]]:
    clock, events = Clock(), list[ResourceEvent]()

    def watch(event: Event) -> None:
        assert isinstance(event, ResourceEvent)
        events.append(event)

    left = removal.remove(account, things, watch, patience_s=patience_s, sleep=clock.sleep, clock=clock)
    return left, clock, events


def test_a_whole_lab_goes_and_the_sweep_is_empty(moto: MotoAccount, lab: Lab, foreign: Lab) -> None:
    things = resource_scan.find(moto, stack="s-1")
    left, _clock, events = remove(moto, things)
    assert left == []
    assert resource_scan.find(moto, stack="s-1") == []
    done = [event.address for event in events if event.state == "done"]
    assert done == [f"us-east-2 {thing.kind} {thing.id}" for thing in things]
    ec2 = moto.client("ec2")
    assert foreign.vpc in {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]}
    states = ec2.describe_instances(InstanceIds=[foreign.instance])["Reservations"][0]["Instances"][0]["State"]
    assert states["Name"] == "running"
    assert len(moto.client("efs").describe_file_systems()["FileSystems"]) == 1


def test_an_answer_of_moto_does_not_see_what_later_requests_change(moto: MotoAccount) -> None:
    """The searches of a sweep ask at the same time, in threads."""
    table: dict[str, Any] = {}
    picker = need_module("moto.core.serialize").XFormedAttributePicker(response_transformers=table)
    table["Instances.Instance.Tags"] = str
    assert picker.response_transformers == {}


def test_what_another_removed_meanwhile_is_done(moto: MotoAccount, lab: Lab) -> None:
    things = resource_scan.find(moto, stack="s-1")
    assert remove(moto, things)[0] == []
    assert remove(moto, things)[0] == []


def test_a_strangers_thing_is_left_alone_even_when_it_is_named(moto: MotoAccount, foreign: Lab) -> None:
    strangers = CloudResource(kind="instance", id=foreign.instance, region="us-east-2", remove="aws ...", tags={"Name": "mine"})
    lying = replace(strangers, tags=TAGS)
    left, _clock, _events = remove(moto, [strangers])
    assert "left alone" in left[0].note
    assert remove(moto, [lying])[0] == []  # by its tags there is no such instance: nothing to do
    state = moto.client("ec2").describe_instances(InstanceIds=[foreign.instance])["Reservations"][0]["Instances"][0]["State"]
    assert state["Name"] == "running"


def test_a_thing_that_lost_our_tags_since_is_left_alone(moto: MotoAccount, lab: Lab) -> None:
    [volume] = [thing for thing in resource_scan.find(moto, stack="s-1") if thing.kind == "volume"]
    moto.client("ec2").delete_tags(Resources=[volume.id], Tags=[{"Key": "Stack"}])
    assert remove(moto, [volume])[0] == []
    assert moto.client("ec2").describe_volumes(VolumeIds=[volume.id])["Volumes"]


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("delete_security_group", "DependencyViolation"),
        ("delete_file_system", "FileSystemInUse"),
        ("delete_route_table", "DependencyViolation"),
        ("delete_subnet", "DependencyViolation"),
        ("delete_vpc", "InternalError"),
    ],
)
def test_what_is_still_held_is_tried_again(moto: MotoAccount, lab: Lab, operation: str, code: str) -> None:
    moto.fail = [(operation, error(code, "still held")), (operation, error(code, "still held"))]
    left, clock, events = remove(moto, resource_scan.find(moto, stack="s-1"))
    assert left == []
    assert resource_scan.find(moto, stack="s-1") == []
    assert clock.now >= 2 * removal.PAUSE_S
    assert sum(event.state == "progress" for event in events) == 2


class LingeringStorage(MotoAccount):
    """Lists shared storage that is gone as `deleting`, the first three times."""

    looks_left = 3

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        items = list(super().pages(service, operation, key, **parameters))
        if operation == "describe_file_systems":
            if items:
                self.last_seen = items
            elif self.looks_left:
                self.looks_left -= 1
                items = [{**item, "LifeCycleState": "deleting"} for item in self.last_seen]
        yield from items


def test_storage_that_is_still_going_is_waited_for(moto: MotoAccount, lab: Lab) -> None:
    account = LingeringStorage()
    left, clock, _events = remove(account, resource_scan.find(account, stack="s-1"))
    assert left == []
    assert account.looks_left == 0
    assert clock.now >= 2 * removal.PAUSE_S
    assert resource_scan.find(moto, stack="s-1") == []


def test_throttling_is_waited_out(moto: MotoAccount, lab: Lab) -> None:
    moto.fail = [("terminate_instances", CloudThrottled("slower", kind="throttle"))]
    assert remove(moto, resource_scan.find(moto, stack="s-1"))[0] == []


def test_patience_ends_and_the_rest_goes_all_the_same(moto: MotoAccount, lab: Lab) -> None:
    moto.fail = [("delete_vpc", error("DependencyViolation", "has dependencies")) for _ in range(100)]
    left, clock, events = remove(moto, resource_scan.find(moto, stack="s-1"))
    assert [(thing.kind, thing.id) for thing in left] == [("VPC", lab.vpc)]
    assert "still depends on it" in left[0].note
    assert left[0].remove == f"aws ec2 delete-vpc --region us-east-2 --vpc-id {lab.vpc}"
    assert 60 <= clock.now <= 60 + removal.PAUSE_S
    assert [event.address for event in events if event.state == "failed"] == [f"us-east-2 VPC {lab.vpc}"]
    assert [thing.kind for thing in resource_scan.find(moto, stack="s-1")] == ["VPC"]


def test_what_holds_a_network_is_named(moto: MotoAccount, lab: Lab) -> None:
    ec2 = moto.client("ec2")
    interface = ec2.create_network_interface(SubnetId=lab.subnet, Description="of a load balancer")["NetworkInterface"]
    moto.fail = [("delete_vpc", error("DependencyViolation")) for _ in range(100)]
    left, _clock, _events = remove(moto, [thing for thing in resource_scan.find(moto, stack="s-1") if thing.kind == "VPC"])
    assert f"{interface['NetworkInterfaceId']} (of a load balancer)" in left[0].note


def test_a_refusal_is_told_at_once_and_the_rest_goes(moto: MotoAccount, lab: Lab) -> None:
    moto.fail = [("delete_key_pair", make_refusal("ec2:DeleteKeyPair"))]
    left, clock, _events = remove(moto, resource_scan.find(moto, stack="s-1"))
    assert [thing.kind for thing in left] == ["key pair"]
    assert "ec2:DeleteKeyPair" in left[0].note
    assert clock.now == 0


def test_what_could_not_be_seen_stays_on_the_list(moto: MotoAccount) -> None:
    unseen = CloudResource(
        kind="volume", id="unknown", region="us-east-2", remove="aws ec2 describe-volumes", seen=False, note="no"
    )
    assert remove(moto, [unseen])[0] == [unseen]


def test_an_instance_that_does_not_end_in_time_is_left(moto: MotoAccount, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    [instance] = [thing for thing in resource_scan.find(moto, stack="s-1") if thing.kind == "instance"]
    monkeypatch.setattr(moto.client("ec2"), "terminate_instances", lambda **_parameters: {})
    left, clock, _events = remove(moto, [instance])
    assert left[0].note == "its removal was requested, and it is still there"
    assert clock.now >= 60


def test_expired_credentials_end_it_at_once_and_everything_stays_listed(moto: MotoAccount, lab: Lab) -> None:
    things = resource_scan.find(moto, stack="s-1")
    over = False

    def session_ends(operation: str) -> None:
        nonlocal over
        if over:
            raise make_expiry()
        over = operation == "terminate_instances"

    moto.before = session_ends
    left, clock, _events = remove(moto, things)
    assert {thing.id for thing in left} == {thing.id for thing in things}
    assert all("expired" in thing.note for thing in left)
    assert clock.now == 0
    moto.before = lambda _operation: None
    assert remove(moto, resource_scan.find(moto, stack="s-1"))[0] == []


def test_two_groups_that_name_each_other_go(moto: MotoAccount, lab: Lab) -> None:
    ec2 = moto.client("ec2")
    tagged = [{"ResourceType": "security-group", "Tags": as_tag_list(TAGS)}]
    other = ec2.create_security_group(VpcId=lab.vpc, GroupName="b", Description="d", TagSpecifications=tagged)["GroupId"]
    for group, named in ((lab.group, other), (other, lab.group)):
        ec2.authorize_security_group_ingress(
            GroupId=group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": named}]}]
        )
    held: list[str] = []

    def holds(operation: str) -> None:
        if operation == "delete_security_group":
            rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
            held.extend(rule["GroupId"] for rule in rules if rule.get("ReferencedGroupInfo"))

    moto.before = holds
    assert remove(moto, resource_scan.find(moto, stack="s-1"))[0] == []
    assert held == []


def test_addresses_interfaces_spot_requests_and_schedules_go_too(moto: MotoAccount, lab: Lab) -> None:
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
    iam = moto.client("iam")
    iam.create_role(
        RoleName="gpucourse-backstop-s-1", Path=schedule.PATH, AssumeRolePolicyDocument="{}", Tags=as_tag_list(TAGS)
    )
    moto.client("scheduler").create_schedule_group(Name="gpucourse-s-1", Tags=as_tag_list(TAGS))
    things = resource_scan.find(moto, stack="s-1")
    kinds = {thing.kind for thing in things}
    assert kinds >= {"elastic address", "network interface", "spot request", "schedule group", "role"}
    assert remove(moto, things)[0] == []
    assert resource_scan.find(moto, stack="s-1") == []


def test_the_backstop_stays_while_an_instance_does(moto: MotoAccount, lab: Lab) -> None:
    moto.client("scheduler").create_schedule_group(Name="gpucourse-s-1", Tags=as_tag_list(TAGS))
    moto.fail = [("terminate_instances", make_refusal("ec2:TerminateInstances"))]
    wanted = [thing for thing in resource_scan.find(moto, stack="s-1") if thing.kind in {"instance", "schedule group"}]
    left, _clock, _events = remove(moto, wanted)
    assert [thing.kind for thing in left] == ["instance", "schedule group"]
    assert moto.client("scheduler").get_schedule_group(Name="gpucourse-s-1")


def test_a_kind_that_the_course_does_not_make_is_left_with_its_command(moto: MotoAccount) -> None:
    other = CloudResource(
        kind="other", id="arn:aws:ec2:us-east-2:1:natgateway/nat-1", region="us-east-2", remove="aws look", tags=TAGS
    )
    left, _clock, _events = remove(moto, [other])
    assert left[0].remove == "aws look"
    assert "does not make" in left[0].note


def test_several_regions_go_together(moto: MotoAccount, lab: Lab) -> None:
    west = moto.in_region("us-west-2")
    west.client("ec2").create_vpc(
        CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": as_tag_list(TAGS)}]
    )
    things = resource_scan.find(moto, course="c0ffee", regions=["us-east-2", "us-west-2"])
    assert removal.remove(moto, things, ignore_event, sleep=lambda _s: None) == []
    assert resource_scan.find(moto, course="c0ffee", regions=["us-east-2", "us-west-2"]) == []


def test_nothing_found_is_nothing_to_do(moto: MotoAccount) -> None:
    assert removal.remove(moto, [], ignore_event) == []


def test_where_an_instance_stays_nobody_waits_for_what_it_holds(moto: MotoAccount, lab: Lab) -> None:
    things = resource_scan.find(moto, stack=TAGS["Stack"])
    moto.fail = [("terminate_instances", make_refusal("ec2:TerminateInstances"))] + [
        ("delete_volume", error("VolumeInUse", "in use")) for _ in range(3)
    ]
    left, clock, _events = remove(moto, things, 60.0)
    assert clock() == 0
    assert {"instance", "volume"} <= {thing.kind for thing in left}
