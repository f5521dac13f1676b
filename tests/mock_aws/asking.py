"""Common boto3 calls of tests to a mock account."""

from __future__ import annotations

from typing import Any

from gpucourse.aws.preflight import CANDIDATES
from tests.mock_aws.account import Account

IMAGE = CANDIDATES["pytorch"][0]
SPOT = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}


def launch(account: Account, instance_type: str = "g4dn.xlarge", /, **options: Any) -> str:
    """Launch one more instance from a course image; return its id."""
    image = account.client("ssm").get_parameter(Name=IMAGE)["Parameter"]["Value"]
    request = {"ImageId": image, "InstanceType": instance_type, "MinCount": 1, "MaxCount": 1, **options}
    return str(account.client("ec2").run_instances(**request)["Instances"][0]["InstanceId"])


def describe_instance(account: Account, instance_id: str) -> dict[str, Any]:
    """Return the account's description of an instance."""
    instance: dict[str, Any] = account.client("ec2").describe_instances(InstanceIds=[instance_id])["Reservations"][0][
        "Instances"
    ][0]
    return instance
