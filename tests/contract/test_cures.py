"""A refusal of the account, its cure followed once as it is told, and the same call again: then it goes well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucourse.aws.session import Account as OurAccount
from gpucourse.errors import PermissionRefused
from tests.mock_aws.account import REGION, Account, mock_account
from tests.mock_aws.asking import SPOT, image, network
from tests.unit.aws.cloud import TAGS, as_tag_list

OURS = as_tag_list(TAGS)


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    """An account where no service has made a role of its own."""
    with mock_account(tmp_path) as account:
        yield account


def ask_for_quota(account: Account, ours: OurAccount) -> None:
    ours.call("service-quotas", "request_service_quota_increase", ServiceCode="ec2", QuotaCode="L-DB2E81BA", DesiredValue=96.0)


def make_mount_target(account: Account, ours: OurAccount) -> None:
    _vpc, subnet, group = network(account)
    account.client("ec2").create_tags(Resources=[subnet, group], Tags=OURS)
    made = account.client("efs").create_file_system(CreationToken=subnet, Tags=OURS)["FileSystemId"]
    try:
        ours.call("efs", "create_mount_target", FileSystemId=made, SubnetId=subnet, SecurityGroups=[group])
    finally:
        for target in account.client("efs").describe_mount_targets(FileSystemId=made)["MountTargets"]:
            account.client("efs").delete_mount_target(MountTargetId=target["MountTargetId"])
        account.client("efs").delete_file_system(FileSystemId=made)


def start_on_spot(account: Account, ours: OurAccount) -> None:
    tagged = [{"ResourceType": kind, "Tags": OURS} for kind in ("instance", "volume")]
    ours.call(
        "ec2",
        "run_instances",
        ImageId=image(account),
        InstanceType="g4dn.xlarge",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=tagged,
        InstanceMarketOptions=SPOT,
    )


@pytest.mark.parametrize("first", [ask_for_quota, make_mount_target, start_on_spot])
def test_a_role_that_may_not_be_made_is_made_by_the_command_that_is_told(
    account: Account, first: Callable[[Account, OurAccount], None]
) -> None:
    ours = OurAccount(REGION, account.environment)
    account.deny("iam:CreateServiceLinkedRole")
    with pytest.raises(PermissionRefused) as caught:
        first(account, ours)
    told = re.search(r"aws iam create-service-linked-role --aws-service-name (\S+?)(;|$)", caught.value.hint)
    assert told, caught.value.hint
    account.calm()
    account.client("iam").create_service_linked_role(AWSServiceName=told[1])
    account.deny("iam:CreateServiceLinkedRole")
    first(account, ours)


def test_whoever_has_the_policy_needs_nobody_for_these_roles(account: Account) -> None:
    ours = OurAccount(REGION, account.environment)
    for first in (ask_for_quota, make_mount_target, start_on_spot):
        first(account, ours)
    assert account.list_refused() == []


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "who"),
    [
        ("iam", "create_role", {"RoleName": "mine", "AssumeRolePolicyDocument": "{}"}, "administrator rights"),
        ("ec2", "create_vpc", {"CidrBlock": "10.9.0.0/16"}, "doctor --policy"),
        ("ec2", "terminate_instances", {"InstanceIds": ["i-0123456789abcdef0"]}, "doctor --policy"),
        ("ssm", "get_parameters", {"Names": ["/database/password"]}, "doctor --policy"),
    ],
    ids=["what only an administrator does", "untagged", "a stranger's", "a secret"],
)
def test_what_the_policy_does_not_allow_is_refused_by_the_account(
    account: Account, service: str, operation: str, parameters: dict[str, object], who: str
) -> None:
    ours = OurAccount(REGION, account.environment)
    with pytest.raises(PermissionRefused) as caught:
        ours.call(service, operation, **parameters)
    assert who in caught.value.hint
