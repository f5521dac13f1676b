"""The mock AWS account under the program's own session: it answers, and refuses what the course's policy does not allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.aws.session import Account as OurAccount
from gpucourse.errors import PermissionRefused
from tests.mock_aws.account import REGION, mock_account


def test_the_mock_account_refuses_what_the_policy_does_not_allow(tmp_path: Path) -> None:
    with mock_account(tmp_path) as account:
        ours = OurAccount(REGION, account.environment)
        assert ours.call("ec2", "describe_vpcs")["Vpcs"]
        for service, operation, parameters, who in (
            ("iam", "create_role", {"RoleName": "mine", "AssumeRolePolicyDocument": "{}"}, "administrator rights"),
            ("ec2", "create_vpc", {"CidrBlock": "10.9.0.0/16"}, "doctor --policy"),  # without tags
            ("ec2", "terminate_instances", {"InstanceIds": ["i-0123456789abcdef0"]}, "doctor --policy"),  # a stranger's
            ("ssm", "get_parameters", {"Names": ["/database/password"]}, "doctor --policy"),
        ):
            with pytest.raises(PermissionRefused) as caught:
                ours.call(service, operation, **parameters)
            assert who in caught.value.hint, operation
