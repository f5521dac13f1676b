"""The mock AWS account: failures at will, gaps that are loud, and a process that ends with its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.mock_aws.account import Account, mock_account
from tests.mock_aws.asking import SPOT, expect_refusal, image, launch, wish
from tests.mock_aws.process import ROOT
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, pytest.mark.slow]  # the mock promises nothing to a learner


def test_a_call_that_an_sdk_sends_again_is_done_once(shared_account: Account) -> None:
    """The answer was lost on its way; a call of its own, in the same words, is done."""
    ids = iter(["first", "first", "second"])
    ec2 = shared_account.client("ec2")
    ec2.meta.events.register(
        "before-send.ec2.CreateVpc",
        lambda request, **_: request.headers.update({"amz-sdk-invocation-id": next(ids)}),
        unique_id="again",
    )
    try:
        networks = [ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"] for _ in range(3)]
    finally:
        ec2.meta.events.unregister("before-send.ec2.CreateVpc", unique_id="again")
    assert networks[0] == networks[1] != networks[2]
    for network in networks[1:]:
        ec2.delete_vpc(VpcId=network)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        *((code, 500) for code in ("InsufficientInstanceCapacity", "InsufficientHostCapacity", "UnfulfillableCapacity")),
        *((code, 503) for code in ("RequestLimitExceeded", "Unavailable")),
        *(
            (code, 400)
            for code in ("VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "InstanceLimitExceeded", "Unsupported")
        ),
        *((code, 400) for code in ("SpotMaxPriceTooLow", "InsufficientFreeAddressesInSubnet", "InvalidAMIID.NotFound")),
        *((code, 400) for code in ("PendingVerification", "Blocked", "InvalidBlockDeviceMapping", "RequestExpired")),
        *((code, 400) for code in ("InvalidKeyPair.Duplicate", "VpcLimitExceeded", "AddressLimitExceeded")),
        *((code, 400) for code in ("InvalidParameterCombination", "DependencyViolation", "Throttling")),
        *((code, 401) for code in ("AuthFailure", "OptInRequired")),
        *((code, 403) for code in ("UnauthorizedOperation", "AuthFailure.ServiceLinkedRoleCreationNotPermitted")),
    ],
)
def test_an_error_comes_with_its_own_status(account: Account, code: str, status: int) -> None:
    account.fail("DescribeVpcs", code, times=1)
    assert expect_refusal(account.client("ec2").describe_vpcs) == (code, status)
    assert account.calls("DescribeVpcs")[-1].code == code
    account.client("ec2").describe_vpcs()


def test_an_error_without_words_is_no_error(account: Account) -> None:
    with pytest.raises(ValueError, match="NoSuchThing is not one of the errors known here"):
        account.fail("RunInstances", "NoSuchThing")
    account.fail("DescribeVpcs", "NoSuchThing", message="nothing of the kind", status=418, times=1)
    assert expect_refusal(account.client("ec2").describe_vpcs) == ("NoSuchThing", 418)


def test_a_launch_fails_by_zone_and_by_type(account: Account) -> None:
    account.fail("RunInstances", "InsufficientInstanceCapacity", zone="us-east-2a", instance_type="g4dn.xlarge")
    run = account.client("ec2").run_instances
    full = {"Placement": {"AvailabilityZone": "us-east-2a"}}
    error_class = pytest.importorskip("botocore.exceptions").ClientError
    with pytest.raises(
        error_class, match=r"sufficient g4dn.xlarge capacity in the Availability Zone you requested \(us-east-2a\)"
    ):
        run(**wish(account, **full))
    launch(account, Placement={"AvailabilityZone": "us-east-2b"})
    launch(account, "g6.xlarge", **full)
    subnet = next(
        description["SubnetId"]
        for description in account.client("ec2").describe_subnets()["Subnets"]
        if description["AvailabilityZone"][-1] == "a"
    )
    assert expect_refusal(run, **wish(account, SubnetId=subnet))[0] == "InsufficientInstanceCapacity"


def test_a_start_fails_by_type_too(account: Account) -> None:
    ec2 = account.client("ec2")
    instance = launch(account)
    ec2.stop_instances(InstanceIds=[instance])
    account.fail("StartInstances", "InsufficientInstanceCapacity", instance_type="g4dn.xlarge")
    assert expect_refusal(ec2.start_instances, InstanceIds=[instance])[1] == 500


def test_the_second_call_fails_or_the_first_two(account: Account) -> None:
    ask = account.client("ec2").describe_vpcs
    account.fail("DescribeVpcs", "InternalError", nth=2)
    ask()
    assert expect_refusal(ask) == ("InternalError", 500)
    ask()
    account.calm()
    account.throttle("ec2:Describe*", times=2)
    assert [expect_refusal(ask)[0] for _ in range(2)] == ["RequestLimitExceeded"] * 2
    ask()


def test_many_callers_at_once_are_counted_right(account: Account) -> None:
    account.fail("DescribeVpcs", "RequestLimitExceeded", times=10)
    ec2 = account.client("ec2")

    def ask(_number: int) -> bool:
        try:
            ec2.describe_vpcs()
        except pytest.importorskip("botocore.exceptions").ClientError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(40))).count(False) == 10


@pytest.mark.parametrize(
    ("service", "action", "ask", "code", "status"),
    [
        ("ec2", "ec2:DescribeVpcs", "describe_vpcs", "UnauthorizedOperation", 403),
        ("sts", "sts:*", "get_caller_identity", "AccessDenied", 403),
        ("ssm", "ssm:DescribeParameters", "describe_parameters", "AccessDeniedException", 400),
        ("efs", "elasticfilesystem:DescribeFileSystems", "describe_file_systems", "AccessDeniedException", 400),
        ("scheduler", "scheduler:ListSchedules", "list_schedules", "AccessDeniedException", 400),
        ("resourcegroupstaggingapi", "tag*:GetResources", "get_resources", "AccessDeniedException", 400),
        ("freetier", "freetier:GetAccountPlanState", "get_account_plan_state", "AccessDeniedException", 400),
    ],
)
def test_a_permission_that_is_missing_is_told_in_each_services_words(
    account: Account, service: str, action: str, ask: str, code: str, status: int
) -> None:
    call = getattr(account.client(service), ask)
    account.deny(action)
    assert expect_refusal(call) == (code, status)
    account.calm()
    call()


def test_credentials_run_out_in_the_middle(account: Account) -> None:
    ec2, sts, ssm = (account.client(name) for name in ("ec2", "sts", "ssm"))
    account.expire_credentials(after="RunInstances")
    instance = launch(account)
    assert expect_refusal(ec2.describe_vpcs) == ("RequestExpired", 400)
    assert expect_refusal(sts.get_caller_identity) == ("ExpiredToken", 403)
    assert expect_refusal(ssm.describe_parameters) == ("ExpiredTokenException", 400)
    account.renew_credentials()
    assert ec2.describe_instances(InstanceIds=[instance])["Reservations"]
    account.expire_credentials(calls=2)
    for _call in range(2):
        sts.get_caller_identity()
    assert expect_refusal(sts.get_caller_identity)[0] == "ExpiredToken"
    account.expire_credentials()
    assert expect_refusal(ec2.describe_vpcs)[0] == "RequestExpired"


def test_a_call_can_be_slow(account: Account) -> None:
    account.slow("DescribeVpcs", 0.3, times=1)
    started = time.monotonic()
    account.client("ec2").describe_vpcs()
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize("done", [False, True])
def test_a_launch_can_be_held_back_before_and_after_it_happened(account: Account, done: bool) -> None:
    asked = wish(account, InstanceMarketOptions=SPOT)
    account.hold("RunInstances", after=done)
    caller = threading.Thread(target=account.client("ec2").run_instances, kwargs=asked)
    caller.start()
    until(lambda: account.list_held_calls() == ["ec2:RunInstances"], "the call is held")
    assert len(account.resources("instance")) == int(done)
    account.client("ec2").describe_vpcs()  # nobody else is held
    account.release()
    caller.join(STUCK_S)
    assert len(account.resources("instance")) == 1


def test_an_answer_can_be_lost_though_the_call_was_done(account: Account) -> None:
    account.fail("RunInstances", "Unavailable", after=True)
    assert expect_refusal(account.client("ec2").run_instances, **wish(account)) == ("Unavailable", 503)
    assert len(account.resources("instance")) == 1


GAPS = {
    "ec2:DescribeCapacityReservationFleets": ("ec2", "describe_capacity_reservation_fleets"),
    "elasticfilesystem:DescribeAccountPreferences": ("efs", "describe_account_preferences"),
    "freetier:GetFreeTierUsage": ("freetier", "get_free_tier_usage"),
    "outposts:ListOutposts": ("outposts", "list_outposts"),
}


def test_a_gap_is_loud_and_nobody_tries_it_twice(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ec2:DescribeCapacityReservationFleets"), mock_account(tmp_path) as account:  # noqa: PT012
        for service, ask in GAPS.values():
            assert expect_refusal(getattr(account.client(service), ask)) == ("MockHasNoSuchAction", 400)
        assert [line.split()[0] for line in account.list_unimplemented_calls()] == list(GAPS)


def test_accounts_know_nothing_of_each_other(account: Account, tmp_path: Path) -> None:
    with mock_account(tmp_path, quotas={"L-DB2E81BA": 4}) as other:
        launch(other)
        other.deny("ec2:*")
        assert account.resources() == []
        account.client("ec2").describe_vpcs()


def test_the_process_ends_with_its_test(tmp_path: Path) -> None:
    with mock_account(tmp_path) as account:
        port = account.port
    left = Account(folder=tmp_path, port=port, region="us-east-2")
    with pytest.raises(ConnectionRefusedError):
        left.resources()


def test_the_process_ends_with_a_test_that_was_killed(tmp_path: Path) -> None:
    script = (
        "import sys, signal; from pathlib import Path; from tests.mock_aws.account import mock_account\n"
        "with mock_account(Path(sys.argv[1])) as account: print(account.port, flush=True); signal.pause()"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        account = Account(folder=tmp_path, port=int(killed.stdout.readline()), region="us-east-2")
        assert account.resources() == []
        os.kill(killed.pid, signal.SIGKILL)
    until(lambda: _refuses(account), "nobody listens any more")


def _refuses(account: Account) -> Any:
    try:
        image(account)
    except OSError:
        return True
    except pytest.importorskip("botocore.exceptions").BotoCoreError:
        return True
    return False
