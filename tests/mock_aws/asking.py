"""What tests ask of a mock account again and again, with boto3."""

from __future__ import annotations

from typing import Any

from gpucourse.aws.images import CANDIDATES
from tests.mock_aws.account import Account

IMAGE = CANDIDATES["pytorch"][0]
SPOT = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}


def image(account: Account, region: str = "") -> str:
    """The id of a course image in a region."""
    parameter = account.client("ssm", region).get_parameter(Name=IMAGE)
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
