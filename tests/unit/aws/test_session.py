from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from botocore import exceptions as known
from botocore.stub import Stubber

import gpucourse.aws
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CloudThrottled, CloudUnreachable, CredentialsError, PermissionRefused
from tests.unit.aws.cloud import ENVIRON, REGION
from tests.waiting import STUCK_S

WHO = {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ada", "UserId": "AIDA"}


@pytest.fixture
def account() -> Account:
    return Account(REGION, ENVIRON)


def test_boto3_is_not_loaded_before_the_first_call() -> None:
    folder = Path(gpucourse.aws.__file__).parent
    names = sorted(f"gpucourse.aws.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__")
    assert len(names) > 10
    probe = (
        f"import sys, importlib; [importlib.import_module(name) for name in {names!r}]\n"
        "from gpucourse.aws.session import Account; Account('us-east-2', {})\n"
        "print([name for name in ('boto3', 'botocore') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=STUCK_S)
    assert done.stdout.strip() == "[]"


def test_who_asks(account: Account) -> None:
    with Stubber(account.client("sts")) as sts:
        sts.add_response("get_caller_identity", WHO, {})
        identity = account.identity()
    assert (identity.account, identity.root) == ("123456789012", False)


def test_the_root_user_is_seen_as_such(account: Account) -> None:
    with Stubber(account.client("sts")) as sts:
        sts.add_response("get_caller_identity", {**WHO, "Arn": "arn:aws:iam::123456789012:root"}, {})
        assert account.identity().root


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnauthorizedOperation", PermissionRefused),
        ("AccessDeniedException", PermissionRefused),
        ("ExpiredTokenException", CredentialsError),
        ("AuthFailure", CredentialsError),
        ("RequestLimitExceeded", CloudThrottled),
        ("Throttling", CloudThrottled),
        ("VpcLimitExceeded", CloudError),
        ("Nonsense", CloudError),
    ],
)
def test_what_aws_answers_becomes_our_own_error(account: Account, code: str, kind: type[Exception]) -> None:
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_client_error("create_vpc", code, "its own words")
        with pytest.raises(kind) as caught:
            account.call("ec2", "create_vpc", CidrBlock="10.0.0.0/16")
    assert type(caught.value) is kind
    assert "its own words" in str(caught.value)
    assert "ec2:CreateVpc in us-east-2" in str(caught.value)
    assert getattr(caught.value, "hint", "")


def test_an_error_of_a_class_of_its_own_is_translated_too(account: Account) -> None:
    with Stubber(account.client("service-quotas")) as quotas:
        quotas.add_client_error("get_service_quota", "NoSuchResourceException", "none")
        with pytest.raises(CloudError) as caught:
            account.call("service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode="L-1")
    assert caught.value.kind == "gone"
    assert caught.value.cloud_code == "NoSuchResourceException"


def test_a_refusal_names_the_permission_as_iam_does(account: Account) -> None:
    with Stubber(account.client("efs")) as efs:
        efs.add_client_error("describe_file_systems", "AccessDeniedException", "no")
        with pytest.raises(PermissionRefused) as caught:
            list(account.pages("efs", "describe_file_systems", "FileSystems"))
    assert caught.value.action == "elasticfilesystem:DescribeFileSystems"


def test_all_pages_are_read(account: Account) -> None:
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_response("describe_vpcs", {"Vpcs": [{"VpcId": "vpc-1"}], "NextToken": "more"}, {})
        ec2.add_response("describe_vpcs", {"Vpcs": [{"VpcId": "vpc-2"}]}, {"NextToken": "more"})
        assert [vpc["VpcId"] for vpc in account.pages("ec2", "describe_vpcs", "Vpcs")] == ["vpc-1", "vpc-2"]


def test_an_error_on_the_second_page_is_ours_too(account: Account) -> None:
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_response("describe_vpcs", {"Vpcs": [{"VpcId": "vpc-1"}], "NextToken": "more"}, {})
        ec2.add_client_error("describe_vpcs", "ExpiredToken", "over")
        pages = account.pages("ec2", "describe_vpcs", "Vpcs")
        assert next(pages)["VpcId"] == "vpc-1"
        with pytest.raises(CredentialsError):
            next(pages)


def test_an_operation_without_pages_serves_as_well(account: Account) -> None:
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_response("describe_key_pairs", {"KeyPairs": [{"KeyName": "a"}]}, {})
        assert list(account.pages("ec2", "describe_key_pairs", "KeyPairs")) == [{"KeyName": "a"}]


def test_the_fault_of_a_reader_of_pages_is_not_dressed_up(account: Account) -> None:
    with Stubber(account.client("ec2")) as ec2:
        ec2.add_response("describe_vpcs", {"Vpcs": [{}]}, {})
        with pytest.raises(KeyError):
            [vpc["VpcId"] for vpc in account.pages("ec2", "describe_vpcs", "Vpcs")]


def test_no_credentials_whatever_this_process_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing = {"AWS_EC2_METADATA_DISABLED": "true"}
    nothing |= {"AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-process")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-process")
    with pytest.raises(CredentialsError) as caught:
        Account(REGION, nothing).identity()
    assert "aws sts get-caller-identity" in caught.value.hint
    assert caught.value.hint.startswith("sign in (aws sso login"), "not again: nobody has signed in here yet"


def test_an_unknown_profile_is_a_matter_of_credentials(tmp_path: Path) -> None:
    environ = {"AWS_PROFILE": "nobody", "AWS_CONFIG_FILE": str(tmp_path / "none")}
    environ |= {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    with pytest.raises(CredentialsError, match="nobody"):
        Account(REGION, environ).identity()


@pytest.mark.parametrize(
    "profile", ["source_profile = nobody\nrole_arn = arn:aws:iam::123456789012:role/x", "sso_session = none"]
)
def test_a_way_of_signing_in_that_does_not_work_is_a_matter_of_credentials(profile: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(f"[profile course]\n{profile}\n")
    environ = {"AWS_PROFILE": "course", "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_EC2_METADATA_DISABLED": "true"}
    with pytest.raises(CredentialsError) as caught:
        Account(REGION, environ | {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}).identity()
    assert "aws configure export-credentials" in caught.value.hint


def test_a_profile_of_the_credentials_file_serves(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[course]\naws_access_key_id = a\naws_secret_access_key = b\n")
    environ = {"AWS_PROFILE": "course", "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    account = Account(REGION, environ | {"AWS_CONFIG_FILE": str(tmp_path / "none")})
    client = account.client("sts")
    with Stubber(client) as sts:
        sts.add_response("get_caller_identity", WHO, {})
        assert account.identity().account == "123456789012"


@pytest.mark.parametrize(
    "error",
    [
        known.EndpointConnectionError(endpoint_url="https://x"),
        known.ConnectTimeoutError(endpoint_url="https://x"),
        known.ReadTimeoutError(endpoint_url="https://x"),
        known.SSLError(endpoint_url="https://x", error=OSError("bad")),
        known.ProxyConnectionError(proxy_url="http://p", error="bad"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_silence_is_unreachable(account: Account, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def silent(**_parameters: object) -> None:
        raise error

    monkeypatch.setattr(account.client("sts"), "get_caller_identity", silent)
    with pytest.raises(CloudUnreachable) as caught:
        account.identity()
    assert "AWS_ENDPOINT_URL" in caught.value.hint


def test_a_wrong_question_is_a_fault_of_ours(account: Account) -> None:
    with pytest.raises(known.ParamValidationError):
        account.call("ec2", "create_vpc", Nonsense=1)


class Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.paths.append(self.headers.get("Authorization", ""))  # type: ignore[attr-defined]
        body = (
            b"<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::1:user/x</Arn><UserId>u</UserId>"
            b"<Account>000000000001</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None: ...


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    server.paths = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"])
def test_another_endpoint_is_honoured_with_the_credentials_given(server: HTTPServer, variable: str) -> None:
    account = Account(REGION, {**ENVIRON, variable: f"http://127.0.0.1:{server.server_port}"})
    assert account.identity().account == "000000000001"
    assert "Credential=testing/" in server.paths[0]  # type: ignore[attr-defined]


def test_nobody_at_the_endpoint(server: HTTPServer) -> None:
    port = server.server_port
    server.shutdown()
    server.server_close()
    with pytest.raises(CloudUnreachable, match="sts:GetCallerIdentity"):
        Account(REGION, {**ENVIRON, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}, attempts=1).identity()


def test_some_services_are_asked_at_home(account: Account) -> None:
    assert account.client("pricing").meta.region_name == "us-east-1"
    assert account.client("freetier").meta.region_name == "us-east-1"
    assert account.client("ec2").meta.region_name == REGION


def test_clients_are_made_once_and_regions_share_nothing(account: Account) -> None:
    assert account.client("ec2") is account.client("ec2")
    other = account.in_region("us-west-2")
    assert other.client("ec2").meta.region_name == "us-west-2"
    assert account.in_region(REGION) is account


def test_a_refused_action_is_named_as_policies_name_it(account: Account) -> None:
    with Stubber(account.client("service-quotas")) as quotas:
        quotas.add_client_error("get_aws_default_service_quota", "AccessDeniedException", "no")
        with pytest.raises(PermissionRefused) as caught:
            account.call("service-quotas", "get_aws_default_service_quota", ServiceCode="ec2", QuotaCode="L-DB2E81BA")
    assert caught.value.action == "servicequotas:GetAWSDefaultServiceQuota"
