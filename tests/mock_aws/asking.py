"""What tests ask of a mock account again and again, with boto3."""

from __future__ import annotations

import base64
import gzip
from typing import Any

from tests.mock_aws.account import Account

BASE = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
SPOT = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}


def image(account: Account, region: str = "") -> str:
    """The id of a course image in a region."""
    parameter = account.client("ssm", region).get_parameter(Name=BASE)
    return str(parameter["Parameter"]["Value"])


def wish(account: Account, instance_type: str = "g4dn.xlarge", /, **more: Any) -> dict[str, Any]:
    """What one instance is asked for with."""
    return {"ImageId": image(account), "InstanceType": instance_type, "MinCount": 1, "MaxCount": 1, **more}


def launch(account: Account, instance_type: str = "g4dn.xlarge", /, **more: Any) -> str:
    """One instance more; its id."""
    reservation = account.client("ec2").run_instances(**wish(account, instance_type, **more))
    return str(reservation["Instances"][0]["InstanceId"])


def describe_instance(account: Account, instance_id: str) -> dict[str, Any]:
    """What the account says of an instance."""
    instance: dict[str, Any] = account.client("ec2").describe_instances(InstanceIds=[instance_id])["Reservations"][0][
        "Instances"
    ][0]
    return instance


def network(account: Account) -> tuple[str, str, str]:
    """A network with one subnet and one security group: their ids."""
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.99.0.0/16")["Vpc"]["VpcId"]
    zone = f"{account.region}a"
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.99.1.0/24", AvailabilityZone=zone)["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="inside", Description="inside", VpcId=vpc)["GroupId"]
    return vpc, subnet, group


def first_script(user_data: str) -> bytes:
    """The script of an instance's first boot out of what the API was told, unpacked as cloud-init does."""
    told = base64.b64decode(user_data)
    return gzip.decompress(told) if told[:2] == b"\x1f\x8b" else told
