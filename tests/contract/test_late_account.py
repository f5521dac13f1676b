"""What waits for AWS, against an account that knows late what was just made: no test waits, the account's own clock does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpucourse.aws import console, instances, schedule
from gpucourse.aws.session import Account as OurAccount
from gpucourse.errors import CloudError
from tests.mock_aws.account import REGION, Account
from tests.mock_aws.asking import launch
from tests.unit.aws.cloud import TAGS, as_tag_list

EXPIRES = datetime(2026, 11, 21, 13, 0, tzinfo=UTC)


@pytest.fixture
def ours(account: Account) -> OurAccount:
    """The account as the program asks it, with the course's policy."""
    return OurAccount(REGION, account.environment)


@pytest.fixture
def administrators(account: Account) -> OurAccount:
    """The account as the program asks it for somebody who may do everything."""
    return OurAccount(REGION, account.administrator)


def launch_node(account: Account, name: str = "node0", stack: str = "s-1") -> str:
    """An instance of a lab."""
    tags = as_tag_list({**TAGS, "Node": name, "Stack": stack})
    return launch(account, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])


def test_a_console_is_empty_for_minutes_then_cut_then_mixed(account: Account, ours: OurAccount) -> None:
    account.delay(console_s=240.0)
    instance = launch_node(account)
    began = account.read_clock()
    key = console.host_key(ours, instance, sleep=account.pass_time, clock=account.read_clock)
    assert key is not None
    assert len(key.split()[1]) == 68
    assert 240.0 + 20.0 <= account.read_clock() - began < 300.0


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "InternalError", "Unavailable"])
def test_one_error_that_outlasts_the_sdks_own_tries_ends_no_wait(account: Account, ours: OurAccount, code: str) -> None:
    instance = launch_node(account)
    once = OurAccount(REGION, account.environment, attempts=1)
    account.delay(console_s=10.0)
    account.fail("ec2:GetConsoleOutput", code, times=2)
    account.fail("ec2:DescribeInstances", code, times=2)
    clock = {"sleep": account.pass_time, "clock": account.read_clock}
    assert [entry.id for entry in instances.wait(once, [instance], "running", **clock)] == [instance]  # type: ignore[arg-type]
    assert console.host_key(once, instance, **clock)  # type: ignore[arg-type]
    account.fail("ec2:DescribeInstances", code)
    with pytest.raises(CloudError, match=code):
        instances.wait(once, [instance], "running", timeout_s=30.0, **clock)  # type: ignore[arg-type]


def test_an_instance_that_ec2_does_not_know_yet_is_waited_for(account: Account, ours: OurAccount) -> None:
    account.delay(known_s=20.0)
    instance = launch_node(account)
    [entry] = instances.wait(ours, [instance], "running", sleep=account.pass_time, clock=account.read_clock)
    assert entry.id == instance


def test_the_backstop_counts_the_nodes_that_a_filter_by_tag_lists_late(account: Account, ours: OurAccount) -> None:
    first = launch_node(account, stack="late")
    account.pass_time(60.0)
    account.delay(listed_s=45.0)
    second = launch_node(account, "node1", stack="late")
    names = ["node0", "node1"]
    clock = {"sleep": account.pass_time, "clock": account.read_clock}
    assert [entry.id for entry in instances.find(ours, stack="late")] == [first]
    listed = instances.find_nodes(ours, stack="late", names=names, **clock)  # type: ignore[arg-type]
    assert [entry.id for entry in listed] == [first, second]
    account.delay(listed_s=1e9)
    began = account.read_clock()
    assert instances.find_nodes(ours, stack="late", names=names, **clock) == []  # type: ignore[arg-type]
    assert account.read_clock() - began == instances.LISTED_S


@pytest.mark.parametrize(("seconds", "state"), [(5.0, "ok"), (60.0, "ok"), (120.0, "warning")])
def test_a_role_that_was_just_made_is_waited_for(
    account: Account, administrators: OurAccount, seconds: float, state: str
) -> None:
    account.have_backstop_role(False)
    account.delay(role_s=seconds)
    stack = {**TAGS, "Stack": f"late-{seconds:.0f}"}
    finding = schedule.arm(administrators, ["i-1", "i-2"], EXPIRES, wanted=stack, sleep=account.pass_time)
    assert finding.state == state, finding.detail
    assert len(schedule.read_scheduled_ends(administrators, stack=stack["Stack"])) == (2 if state == "ok" else 0)
    assert schedule.disarm(administrators, stack=stack["Stack"]).state == "ok"


def test_a_group_that_is_being_deleted_is_neither_taken_nor_deleted_again(account: Account, ours: OurAccount) -> None:
    account.delay(deleting_s=40.0)
    stack = {**TAGS, "Stack": "again"}
    arm = {"wanted": stack, "sleep": account.pass_time}
    made = schedule.arm(ours, ["i-1"], EXPIRES, **arm)  # type: ignore[arg-type]
    assert made.state == "ok", made.detail
    assert schedule.disarm(ours, stack="again").state == "ok"
    assert schedule.disarm(ours, stack="again").state == "ok"
    assert schedule.arm(ours, ["i-2"], EXPIRES, **arm).state == "ok"  # type: ignore[arg-type]
    assert list(schedule.read_scheduled_ends(ours, stack="again")) == ["i-2"]
    assert schedule.disarm(ours, stack="again").state == "ok"
