"""Failures while Terraform builds or removes a lab: the exit code, the message, and what is left.

There is one test for each way to continue after a failure. The messages for AWS's error codes are tested in
tests/unit/aws/test_failures.py.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.mock_aws.account import REGION
from tests.mock_aws.asking import launch
from tests.system.aws import hand_made
from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, pytest.mark.slow]

DEPLOY = ("deploy", "1", "--target", "aws", "--yes")
STACK = "01-aws-t4"
SUBNET = "ec2:DeleteSubnet"


@pytest.fixture(scope="module")
def shared_learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """Yield a learner whose module 1 has a lab of one node."""
    folder = tmp_path_factory.mktemp("failures")
    with cloud_learner(folder) as learner:
        learner.environ["GPUCOURSE_COURSE"] = str(write_course(folder / "course"))
        yield learner


@pytest.fixture
def learner(shared_learner: CloudLearner) -> Iterator[CloudLearner]:
    """Yield the same learner. Afterwards, the account is undisturbed again, and empty after a `destroy`."""
    yield shared_learner
    shared_learner.account.calm()
    shared_learner.types("destroy", "--all", "--yes", timeout=300)
    assert shared_learner.list_resources() == []
    assert shared_learner.deployment(STACK) == {}


def wait_for_held(learner: CloudLearner, call: str) -> None:
    until(lambda: call in learner.account.list_held_calls(), f"{call} is held back")


def kill_terraform(learner: CloudLearner) -> None:
    lock = learner.workspace / ".gpucourse/stacks" / STACK / "terraform.lock"
    os.kill(int(json.loads(lock.read_text())["pid"]), signal.SIGKILL)


def test_deploy_after_a_kill_finds_the_instance_that_no_state_knows(learner: CloudLearner) -> None:
    learner.account.hold("RunInstances", after=True, nth=2)  # the first one is the preflight's, which starts nothing
    deploy = learner.begins(*DEPLOY)
    wait_for_held(learner, "ec2:RunInstances")
    os.kill(deploy.pid, signal.SIGKILL)
    kill_terraform(learner)
    deploy.communicate()
    learner.account.calm()
    [orphan] = learner.list_resources("instance")
    assert learner.deployment(STACK)["phase"] == "creating"

    result = learner.types(*DEPLOY, timeout=400)
    assert "that an interrupted attempt left" in result.err
    [instance] = learner.list_resources("instance")
    assert instance.id != orphan.id
    assert learner.deployment(STACK)["phase"] == "ready"


def test_deploy_that_ctrl_c_stops_says_what_exists_and_what_it_costs(learner: CloudLearner) -> None:
    learner.account.hold("CreateSubnet", after=True)  # so Terraform ends without recording the subnet
    deploy = learner.begins(*DEPLOY)
    wait_for_held(learner, "ec2:CreateSubnet")
    deploy.send_signal(signal.SIGINT)
    message = deploy.communicate(timeout=STUCK_S)[1].decode()
    assert deploy.returncode == 130, message
    for words in ("deploying 01-aws-t4 was interrupted", "an hour", "gpucourse destroy 1"):
        assert words in message
    learner.account.calm()
    assert "that an interrupted attempt left" in learner.types("destroy", "1", "--yes").err


def test_deploy_takes_the_next_zone_and_destroy_finishes_after_expired_credentials_and_a_kill(
    learner: CloudLearner,
) -> None:
    learner.account.fail("RunInstances", "InsufficientInstanceCapacity", zone="us-east-2a")
    result = learner.types(*DEPLOY, "--spot", timeout=400)
    assert "Next: g4dn.xlarge in us-east-2b" in result.err
    assert "removing what the failed attempt left" in result.err
    cloud = learner.deployment(STACK)["cloud"]
    assert (cloud["zone"], cloud["market"]) == ("us-east-2b", "spot")
    assert [(item["zone"], item["code"]) for item in cloud["tried"]] == [("us-east-2a", "InsufficientInstanceCapacity")]
    [network] = learner.list_resources("vpc")
    assert network.tags["Stack"] == learner.deployment(STACK)["uid"]

    learner.account.calm()
    stranger = launch(learner.account)
    uid = learner.deployment(STACK)["uid"]
    [instance] = [item.id for item in learner.list_resources("instance") if item.tags.get("Stack") == uid]
    unknown = hand_made.instance(
        learner, hand_made.tags_of(learner, uid, Module="1", Node="node7")
    )  # Terraform's state lacks it
    learner.account.expire_credentials(action="ec2:TerminateInstances")
    result = learner.types("destroy", "1", "--yes", code=8, timeout=240)
    assert "the AWS credentials have expired" in result.err
    assert f"aws ec2 terminate-instances --region {REGION} --instance-ids" in result.err
    assert instance in result.err
    assert learner.deployment(STACK)["phase"] == "destroying"
    learner.account.renew_credentials()

    learner.account.hold(SUBNET)
    destroy = learner.begins("destroy", "1", "--yes", "--json")
    wait_for_held(learner, SUBNET)
    kill_terraform(learner)
    learner.account.fail(SUBNET, "DependencyViolation", times=2)
    learner.account.release()
    out, err = destroy.communicate(timeout=240)
    assert destroy.returncode == 0, err.decode()
    assert b"Terraform failed" in err
    [receipt] = json.loads(out)["receipts"]
    assert receipt["leftovers"] == []
    assert any(line.startswith("VPC ") for line in receipt["swept"])
    assert [str(item) for item in learner.list_resources() if item.tags.get("Stack") == uid] == []
    assert stranger in hand_made.ids(learner)
    assert unknown not in hand_made.ids(learner)
    learner.account.client("ec2").terminate_instances(InstanceIds=[stranger])
