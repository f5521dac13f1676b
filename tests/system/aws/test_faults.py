"""What can go wrong while a lab is being built, one fault at a time: afterwards nothing is left, or it is said what is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

DEPLOY = ("deploy", "1", "--target", "aws", "--yes")
STACK = "01-aws-t4"


@pytest.fixture
def small(learner: CloudLearner, tmp_path: Path) -> CloudLearner:
    """A learner whose module 1 is one node."""
    learner.environ["GPUCOURSE_COURSE"] = str(write_course(tmp_path / "course"))
    return learner


@pytest.mark.parametrize(
    ("phase", "call"),
    [
        pytest.param("looking at the account", "servicequotas:GetServiceQuota", marks=pytest.mark.slow),
        pytest.param("planning", "ec2:DescribeImages", marks=pytest.mark.slow),
        pytest.param("building", "ec2:CreateVpc", marks=pytest.mark.slow),
        pytest.param("waiting for the host key", "ec2:GetConsoleOutput", marks=pytest.mark.slow),
    ],
)
def test_our_own_sudden_death_leaves_nothing_that_destroy_does_not_find(small: CloudLearner, phase: str, call: str) -> None:
    account = small.account
    account.hold(call)
    for often in ("ec2:DescribeInstances", "ec2:CreateSubnet"):  # throttling for a moment is waited out
        account.throttle(often, times=2)
    deploy = small.begins(*DEPLOY)
    until(lambda: call in account.list_held_calls(), f"{phase}: {call}")
    deploy.kill()
    deploy.communicate(timeout=STUCK_S)
    account.calm()
    recorded = bool(small.deployment(STACK))
    assert recorded or small.list_resources() == [], "the record is written before anything is made"
    small.types("destroy", "--all", "--yes", timeout=300)
    assert small.list_resources() == []
    assert small.deployment(STACK) == {}


@pytest.mark.slow
def test_credentials_that_expire_while_it_is_built(small: CloudLearner) -> None:
    small.account.expire_credentials(after="ec2:CreateVpc")
    error = small.types(*DEPLOY, "--json", code=None, timeout=300).document["error"]
    assert (error["code"], error["exit_code"]) == ("credentials", 3)
    assert "aws sso login" in error["hint"]
    assert "gpucourse destroy 1" in error["hint"]
    assert [resource.kind for resource in small.list_resources()][:1], "something was made before"
    blind = small.types("destroy", "1", "--yes", code=3)
    assert "have expired" in blind.err
    assert small.deployment(STACK)["phase"] in {"failed", "destroying"}
    small.account.renew_credentials()
    small.types("destroy", "1", "--yes", timeout=300)
    assert small.list_resources() == []
