"""A lab in moto, with everything that a stack of the course creates and our tags, next to another owner's resources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.parts import need_module
from tests.unit.aws.cloud import TAGS, MotoAccount, as_tag_list

IMAGE = "ami-0123456789abcdef0"  # moto takes any


@dataclass
class Lab:
    """The ids of the created resources."""

    vpc: str
    subnet: str
    group: str
    instance: str
    file_system: str


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[MotoAccount]:
    """Yield an empty account."""
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    mock_aws = need_module("moto").mock_aws
    from tests.mock_aws.patches import threads

    threads.read_a_copy_of_what_requests_change()
    with mock_aws():
        yield MotoAccount()


def make_lab(account: MotoAccount, tags: dict[str, str], *, node: str = "node0") -> Lab:
    """Return a whole lab with these tags. Without tags, it belongs to another owner."""
    ec2 = account.client("ec2")

    def tag(*kinds: str) -> dict[str, Any]:
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": as_tag_list(tags)} for kind in kinds]} if tags else {}

    vpc = ec2.create_vpc(CidrBlock="10.77.0.0/16", **tag("vpc"))["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.77.1.0/24", **tag("subnet"))["Subnet"]["SubnetId"]
    gateway = ec2.create_internet_gateway(**tag("internet-gateway"))["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    table = ec2.create_route_table(VpcId=vpc, **tag("route-table"))["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    name = tags.get("Stack", "foreign")
    group = ec2.create_security_group(VpcId=vpc, GroupName=name, Description="d", **tag("security-group"))["GroupId"]
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "18.1.2.3/32", "Description": "SSH"}]}
    among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[ssh, among])
    ec2.create_key_pair(KeyName=name, **tag("key-pair"))
    network = {"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group], "AssociatePublicIpAddress": True}
    specifications = tag("instance", "volume").get("TagSpecifications", [])
    for specification in specifications[:1]:
        specification["Tags"] = [*specification["Tags"], {"Key": "Node", "Value": node}]
    [instance] = ec2.run_instances(
        ImageId=IMAGE,
        MinCount=1,
        MaxCount=1,
        InstanceType="g4dn.xlarge",
        NetworkInterfaces=[network],
        TagSpecifications=specifications,
    )["Instances"]
    efs = account.client("efs")
    system = efs.create_file_system(CreationToken=name, Tags=as_tag_list(tags))["FileSystemId"]
    efs.create_mount_target(FileSystemId=system, SubnetId=subnet)
    return Lab(vpc=vpc, subnet=subnet, group=group, instance=instance["InstanceId"], file_system=system)


@pytest.fixture
def lab(moto: MotoAccount) -> Lab:
    """Return a lab of ours."""
    return make_lab(moto, TAGS)


@pytest.fixture
def foreign(moto: MotoAccount) -> Lab:
    """Return another owner's lab, without tags."""
    return make_lab(moto, {})
