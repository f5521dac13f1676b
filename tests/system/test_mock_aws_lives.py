"""The mock AWS account: how things end, what holds what, and that everything that is left is seen."""

from __future__ import annotations

import pytest

from tests.mock_aws.account import Account
from tests.mock_aws.asking import SPOT, describe_instance, expect_refusal, launch, network

pytestmark = [pytest.mark.system, pytest.mark.slow]  # the mock promises nothing to a learner

KEY = b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8wK4sDWFaDwFfTDN0qbhtHNfS0mFoJ1W5YnUuVJ6xk learner"
TRUST = '{"Version": "2012-10-17", "Statement": []}'


def test_a_terminated_instance_keeps_its_name_and_nothing_else(account: Account) -> None:
    ec2 = account.client("ec2")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Stack", "Value": "one"}]}]
    instance = launch(account, TagSpecifications=tags)
    alive = describe_instance(account, instance)
    assert alive["PublicIpAddress"]
    assert alive["PrivateIpAddress"]
    for _again in range(2):
        ec2.terminate_instances(InstanceIds=[instance])
    dead = describe_instance(account, instance)
    assert dead["State"]["Name"] == "terminated"
    assert dead["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert dead["Tags"] == [{"Key": "Stack", "Value": "one"}]
    assert not {"PublicIpAddress", "PrivateIpAddress", "SubnetId", "VpcId"} & dead.keys()
    assert dead.get("NetworkInterfaces", []) == []
    for call in (ec2.start_instances, ec2.stop_instances):
        assert expect_refusal(call, InstanceIds=[instance]) == ("IncorrectInstanceState", 400)
    assert account.resources() == []


@pytest.mark.parametrize(("behaviour", "state", "volumes"), [("terminate", "terminated", 0), ("stop", "stopped", 1)])
def test_a_machine_that_powers_off_does_as_it_was_told_at_its_launch(
    account: Account, behaviour: str, state: str, volumes: int
) -> None:
    instance = launch(account, InstanceInitiatedShutdownBehavior=behaviour)
    account.shut_down(instance)
    description = describe_instance(account, instance)
    assert description["State"]["Name"] == state
    assert description["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
    assert description["StateTransitionReason"].startswith("Instance initiated shutdown (20")
    assert len(account.resources("volume")) == volumes


def test_what_powering_off_does_to_a_spot_instance_is_not_to_be_changed(account: Account) -> None:
    ec2 = account.client("ec2")
    on_spot, on_demand = launch(account, InstanceMarketOptions=SPOT), launch(account)
    attribute = "instanceInitiatedShutdownBehavior"
    attributes = [ec2.describe_instance_attribute(InstanceId=item, Attribute=attribute) for item in (on_spot, on_demand)]
    assert [item["InstanceInitiatedShutdownBehavior"]["Value"] for item in attributes] == ["terminate", "stop"]
    change = {"InstanceInitiatedShutdownBehavior": {"Value": "terminate"}}
    assert expect_refusal(ec2.modify_instance_attribute, InstanceId=on_spot, **change) == ("UnsupportedOperation", 400)
    ec2.modify_instance_attribute(InstanceId=on_demand, **change)
    account.shut_down(on_spot)
    assert describe_instance(account, on_spot)["State"]["Name"] == "terminated"


def test_a_spot_request_is_cancelled_where_the_courses_policy_lets_one(account: Account) -> None:
    ec2 = account.client("ec2")
    instance = launch(account, InstanceMarketOptions=SPOT)
    asked = {"SpotInstanceRequestIds": [describe_instance(account, instance)["SpotInstanceRequestId"]]}
    assert ec2.describe_spot_instance_requests(**asked)["SpotInstanceRequests"][0]["Tags"] == []
    ec2.cancel_spot_instance_requests(**asked)
    assert describe_instance(account, instance)["State"]["Name"] == "running"


def test_a_burstable_instance_has_the_credits_that_it_was_launched_with(account: Account) -> None:
    ec2 = account.client("ec2")
    usual = launch(account, "t3.medium")
    told = launch(account, "t3.medium", CreditSpecification={"CpuCredits": "standard"})
    specifications = ec2.describe_instance_credit_specifications(InstanceIds=[usual, told])["InstanceCreditSpecifications"]
    assert {specification["InstanceId"]: specification["CpuCredits"] for specification in specifications} == {
        usual: "unlimited",
        told: "standard",
    }


def test_a_machine_of_the_spot_market_is_taken_back(account: Account) -> None:
    ec2 = account.client("ec2")
    instance = launch(account, InstanceMarketOptions=SPOT)
    description = describe_instance(account, instance)
    assert description["InstanceLifecycle"] == "spot"
    asked = {"SpotInstanceRequestIds": [description["SpotInstanceRequestId"]]}
    (request,) = ec2.describe_spot_instance_requests(**asked)["SpotInstanceRequests"]
    assert (request["State"], request["Type"], request["InstanceId"]) == ("active", "one-time", instance)
    assert expect_refusal(ec2.stop_instances, InstanceIds=[instance])[0] == "UnsupportedOperation"
    account.interrupt(instance)
    assert describe_instance(account, instance)["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert ec2.describe_spot_instance_requests(**asked)["SpotInstanceRequests"][0]["State"] == "closed"
    with pytest.raises(ValueError, match="there is no instance"):
        account.interrupt(instance)


def test_a_stopped_machine_has_no_public_address_and_gets_another(account: Account) -> None:
    ec2 = account.client("ec2")
    instance = launch(account)
    before = describe_instance(account, instance)
    ec2.stop_instances(InstanceIds=[instance])
    assert "PublicIpAddress" not in describe_instance(account, instance)
    ec2.start_instances(InstanceIds=[instance])
    after = describe_instance(account, instance)
    assert after["PublicIpAddress"] != before["PublicIpAddress"]
    assert after["PrivateIpAddress"] == before["PrivateIpAddress"]


def test_a_network_is_kept_while_anything_is_in_it(account: Account) -> None:
    ec2, efs = account.client("ec2"), account.client("efs")
    vpc, subnet, group = network(account)
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    card = {"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group], "AssociatePublicIpAddress": True}
    instance = launch(account, NetworkInterfaces=[card])
    system = efs.create_file_system(CreationToken="shared")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=subnet, SecurityGroups=[group])["MountTargetId"]
    held = ("DependencyViolation", 400)

    assert expect_refusal(ec2.delete_subnet, SubnetId=subnet) == held
    assert expect_refusal(ec2.delete_security_group, GroupId=group) == held
    assert expect_refusal(ec2.detach_internet_gateway, InternetGatewayId=gateway, VpcId=vpc) == held
    ec2.terminate_instances(InstanceIds=[instance])
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    ec2.delete_internet_gateway(InternetGatewayId=gateway)

    assert expect_refusal(ec2.delete_subnet, SubnetId=subnet) == held  # the mount target
    assert expect_refusal(ec2.delete_security_group, GroupId=group) == held
    assert expect_refusal(efs.delete_file_system, FileSystemId=system) == ("FileSystemInUse", 409)
    efs.delete_mount_target(MountTargetId=target)
    efs.delete_file_system(FileSystemId=system)
    ec2.delete_subnet(SubnetId=subnet)

    other = ec2.create_security_group(GroupName="other", Description="other", VpcId=vpc)["GroupId"]
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=other, IpPermissions=[rule])
    assert expect_refusal(ec2.delete_security_group, GroupId=group) == held  # a rule of the other one
    assert expect_refusal(ec2.delete_vpc, VpcId=vpc) == held
    ec2.delete_security_group(GroupId=other)
    ec2.delete_security_group(GroupId=group)
    ec2.delete_vpc(VpcId=vpc)


def test_a_region_has_room_for_five_networks(account: Account) -> None:
    ec2 = account.client("ec2")
    made = [ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"] for number in range(4)]
    assert expect_refusal(ec2.create_vpc, CidrBlock="10.9.0.0/16") == ("VpcLimitExceeded", 400)
    for vpc in made:
        ec2.delete_vpc(VpcId=vpc)


def test_a_key_pair_is_found_and_deleted_by_its_id(account: Account) -> None:
    ec2 = account.client("ec2")
    pair = ec2.import_key_pair(KeyName="learner", PublicKeyMaterial=KEY)["KeyPairId"]
    assert expect_refusal(ec2.import_key_pair, KeyName="learner", PublicKeyMaterial=KEY)[0] == "InvalidKeyPair.Duplicate"
    assert ec2.describe_key_pairs(KeyPairIds=[pair])["KeyPairs"][0]["KeyName"] == "learner"
    ec2.delete_key_pair(KeyPairId=pair)
    assert expect_refusal(ec2.describe_key_pairs, KeyPairIds=[pair]) == ("InvalidKeyPair.NotFound", 400)


def test_the_console_shows_no_keys_where_no_computer_stands_behind(account: Account) -> None:
    said = account.client("ec2").get_console_output(InstanceId=launch(account), Latest=True)["Output"]
    assert "Linux version" in said
    assert "SSH HOST KEY" not in said


def test_everything_that_is_left_is_seen_with_its_tags_and_region(account: Account) -> None:
    ec2, far = account.client("ec2"), account.client("ec2", "us-west-2")
    efs, scheduler, iam, ssm = (account.client(name) for name in ("efs", "scheduler", "iam", "ssm"))
    vpc, subnet, group = network(account)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    card = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "Project", "Value": "gpucourse"}]}]
    disk = far.create_volume(AvailabilityZone="us-west-2a", Size=8, TagSpecifications=tags)["VolumeId"]
    snapshot = far.create_snapshot(VolumeId=disk)["SnapshotId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    ec2.import_key_pair(KeyName="learner", PublicKeyMaterial=KEY)
    ec2.create_placement_group(GroupName="near", Strategy="cluster")
    system = efs.create_file_system(CreationToken="t", Tags=[{"Key": "Project", "Value": "gpucourse"}])["FileSystemId"]
    scheduler.create_schedule_group(Name="ends")
    target = {"Arn": "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances", "RoleArn": "arn:aws:iam::123456789012:role/r"}
    when = {"ScheduleExpression": "at(2030-01-01T00:00:00)", "FlexibleTimeWindow": {"Mode": "OFF"}}
    scheduler.create_schedule(Name="end", GroupName="ends", Target=target, **when)
    iam.create_role(RoleName="backstop", AssumeRolePolicyDocument=TRUST)
    ssm.put_parameter(Name="/mine", Value="1", Type="String")

    resources = account.resources()
    assert {resource.kind for resource in resources} == {
        *("volume", "snapshot", "network interface", "address", "key pair", "placement group", "security group", "subnet"),
        *("route table", "internet gateway", "vpc", "file system", "schedule", "schedule group", "role", "parameter"),
    }
    assert len(resources) == 16
    tagged = {(resource.kind, resource.region) for resource in resources if resource.tags.get("Project") == "gpucourse"}
    assert tagged == {("volume", "us-west-2"), ("file system", "us-east-2")}
    assert [str(resource) for resource in account.resources("vpc")] == [f"vpc {vpc} (us-east-2)"]

    ssm.delete_parameter(Name="/mine")
    iam.delete_role(RoleName="backstop")
    scheduler.delete_schedule_group(Name="ends")
    efs.delete_file_system(FileSystemId=system)
    ec2.delete_placement_group(GroupName="near")
    ec2.delete_key_pair(KeyName="learner")
    ec2.release_address(AllocationId=address)
    far.delete_snapshot(SnapshotId=snapshot)
    far.delete_volume(VolumeId=disk)
    ec2.delete_network_interface(NetworkInterfaceId=card)
    ec2.delete_internet_gateway(InternetGatewayId=gateway)
    ec2.delete_route_table(RouteTableId=table)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_security_group(GroupId=group)
    ec2.delete_vpc(VpcId=vpc)
