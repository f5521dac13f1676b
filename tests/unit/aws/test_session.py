from __future__ import annotations

from pathlib import Path

import boto3
import pytest
from botocore import exceptions as known
from botocore.stub import Stubber

from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CloudThrottled, CloudUnreachable, CredentialsError, PermissionRefused
from tests.unit.aws.cloud import ENVIRON, REGION

WHO = {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ada", "UserId": "AIDA"}


@pytest.fixture(scope="module")
def session() -> boto3.Session:
    """Return a session whose models are loaded once for all tests."""
    return Account(REGION, ENVIRON)._start_session()


@pytest.fixture
def account(session: boto3.Session) -> Account:
    new_account = Account(REGION, ENVIRON)
    new_account._session = session
    return new_account


def test_identity_is_that_of_the_caller_and_says_whether_it_is_the_root_user(account: Account) -> None:
    with Stubber(account.client("sts")) as sts:
        sts.add_response("get_caller_identity", WHO, {})
        sts.add_response("get_caller_identity", {**WHO, "Arn": "arn:aws:iam::123456789012:root"}, {})
        identity, root = account.identity(), account.identity()
    assert (identity.account, identity.root, root.root) == ("123456789012", False, True)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnauthorizedOperation", PermissionRefused),
        ("ExpiredTokenException", CredentialsError),
        ("RequestLimitExceeded", CloudThrottled),
        ("NoSuchEntity", CloudError),
    ],
)
def test_call_translates_an_error_of_aws(account: Account, code: str, kind: type[Exception]) -> None:
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_client_error("create_vpc", code, "its own words")
        with pytest.raises(kind) as caught:
            account.call("ec2", "create_vpc", CidrBlock="10.0.0.0/16")
    assert type(caught.value) is kind
    assert "its own words" in str(caught.value)
    assert "ec2:CreateVpc in us-east-2" in str(caught.value)
    assert getattr(caught.value, "hint", "")


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "action"),
    [
        ("efs", "describe_file_systems", {}, "elasticfilesystem:DescribeFileSystems"),
        (
            "service-quotas",
            "get_aws_default_service_quota",
            {"ServiceCode": "ec2", "QuotaCode": "L-DB2E81BA"},
            "servicequotas:GetAWSDefaultServiceQuota",
        ),
        ("budgets", "describe_budgets", {"AccountId": "123456789012"}, "budgets:ViewBudget"),
    ],
)
def test_call_names_the_permission_as_policies_do(
    account: Account, service: str, operation: str, parameters: dict[str, str], action: str
) -> None:
    with Stubber(account.client(service)) as client:
        client.add_client_error(operation, "AccessDeniedException", "no")
        with pytest.raises(PermissionRefused) as caught:
            account.call(service, operation, **parameters)
    assert caught.value.action == action


def test_pages_gives_the_items_of_all_pages_and_translates_an_error_on_the_way(account: Account) -> None:
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_response("describe_vpcs", {"Vpcs": [{"VpcId": "vpc-1"}], "NextToken": "more"}, {})
        ec2.add_response("describe_vpcs", {"Vpcs": [{"VpcId": "vpc-2"}], "NextToken": "and more"}, {"NextToken": "more"})
        ec2.add_client_error("describe_vpcs", "ExpiredToken", "over")
        pages = account.pages("ec2", "describe_vpcs", "Vpcs")
        assert [next(pages)["VpcId"], next(pages)["VpcId"]] == ["vpc-1", "vpc-2"]
        with pytest.raises(CredentialsError):
            next(pages)
        ec2.add_response("describe_key_pairs", {"KeyPairs": [{"KeyName": "a"}]}, {})
        assert list(account.pages("ec2", "describe_key_pairs", "KeyPairs")) == [{"KeyName": "a"}], "it has no pages"


def test_identity_without_credentials_ignores_those_of_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing = {"AWS_EC2_METADATA_DISABLED": "true"}
    nothing |= {"AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-process")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-process")
    with pytest.raises(CredentialsError) as caught:
        Account(REGION, nothing).identity()
    assert "aws sts get-caller-identity" in caught.value.hint
    assert caught.value.hint.startswith("sign in (aws sso login"), "not again: nobody has signed in here yet"


@pytest.mark.parametrize(
    "profile",
    [
        "",
        "[profile course]\nsource_profile = nobody\nrole_arn = arn:aws:iam::123456789012:role/x",
        "[profile course]\nsso_session = x",
    ],
)
def test_identity_refuses_a_profile_that_is_unknown_or_cannot_sign_in(profile: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(profile)
    environ = {"AWS_PROFILE": "course", "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_EC2_METADATA_DISABLED": "true"}
    with pytest.raises(CredentialsError) as caught:
        Account(REGION, environ | {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}).identity()
    assert "aws configure export-credentials" in caught.value.hint


@pytest.mark.parametrize(
    "error",
    [
        known.EndpointConnectionError(endpoint_url="https://x"),
        known.ReadTimeoutError(endpoint_url="https://x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_call_without_an_answer_is_unreachable(account: Account, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def silent(**_parameters: object) -> None:
        raise error

    monkeypatch.setattr(account.client("sts"), "get_caller_identity", silent)
    with pytest.raises(CloudUnreachable) as caught:
        account.identity()
    assert "AWS_ENDPOINT_URL" in caught.value.hint
