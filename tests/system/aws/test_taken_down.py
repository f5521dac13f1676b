"""destroy with the real Terraform at work: it is killed, we are killed, the credentials run out, AWS holds on to something."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.mock_aws.account import REGION
from tests.mock_aws.asking import launch
from tests.system.aws import hand_made
from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.waiting import until

pytestmark = pytest.mark.system

TERMINATE, SUBNET = "ec2:TerminateInstances", "ec2:DeleteSubnet"
MODULES = ("1", "4")


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """Two labs that exist, built at the same time: a chain of troubles for each."""
    folder = tmp_path_factory.mktemp("labs")
    with cloud_learner(folder) as learner:
        learner.environ["GPUCOURSE_COURSE"] = str(write_course(folder / "course"))
        with ThreadPoolExecutor(len(MODULES)) as pool:
            for done in [pool.submit(_deploy, learner, module) for module in MODULES]:
                done.result()
        yield learner
        learner.account.calm()
        learner.types("destroy", "--all", "--yes", "--discard", timeout=400)
        assert learner.list_resources() == []


def _deploy(learner: CloudLearner, module: str) -> None:
    learner.types("deploy", module, "--target", "aws", "--yes", timeout=400)


def _terraform(learner: CloudLearner, stack: str) -> int:
    return int(json.loads((learner.workspace / ".gpucourse/stacks" / stack / "terraform.lock").read_text())["pid"])


def _of(learner: CloudLearner, stack: str) -> list[str]:
    """What stands of a stack, with the untagged parts of it left out."""
    return [str(resource) for resource in learner.list_resources() if resource.tags.get("Stack") == stack]


@pytest.mark.slow
def test_expired_credentials_a_kill_and_a_slow_aws_still_leave_nothing(labs: CloudLearner) -> None:
    uid = labs.deployment("01-aws-t4")["uid"]
    [instance] = [resource.id for resource in labs.list_resources("instance") if resource.tags["Stack"] == uid]
    labs.account.expire_credentials(after=TERMINATE)
    typed = labs.types("destroy", "1", "--yes", code=8, timeout=240)
    assert "the AWS credentials have expired" in typed.err
    assert instance in typed.err
    assert f"aws ec2 terminate-instances --region {REGION} --instance-ids {instance}" in typed.err
    assert labs.deployment("01-aws-t4")["phase"] == "destroying"
    labs.account.renew_credentials()

    labs.account.hold(SUBNET)
    destroy = labs.begins("destroy", "1", "--yes")
    until(lambda: SUBNET in labs.account.list_held_calls(), "the subnet is being removed")
    os.kill(destroy.pid, signal.SIGKILL)
    destroy.communicate()
    assert labs.deployment("01-aws-t4")["phase"] == "destroying"
    labs.account.fail(SUBNET, "DependencyViolation", times=2)
    labs.account.release()
    [receipt] = labs.documents("destroy", "1", "--yes")["receipts"]  # waits for the Terraform that went on alone
    assert receipt["leftovers"] == []
    assert _of(labs, uid) == []
    assert labs.deployment("01-aws-t4") == {}


@pytest.mark.slow
def test_terraform_is_killed_and_the_same_command_goes_on_by_tag(labs: CloudLearner) -> None:
    stranger = launch(labs.account)
    uid = labs.deployment("04-aws-t4")["uid"]
    outside = hand_made.instance(labs, hand_made.tags_of(labs, uid, Module="4", Node="node7"))  # not in Terraform's state
    labs.account.hold(SUBNET)
    destroy = labs.begins("destroy", "4", "--yes", "--json")
    until(lambda: SUBNET in labs.account.list_held_calls(), "the subnet is being removed")
    os.kill(_terraform(labs, "04-aws-t4"), signal.SIGKILL)
    labs.account.release()
    out, err = destroy.communicate(timeout=240)
    assert destroy.returncode == 0, err.decode()
    assert b"Terraform could not" in err
    [receipt] = json.loads(out)["receipts"]
    assert receipt["leftovers"] == []
    assert any(line.startswith("VPC ") for line in receipt["swept"])
    assert _of(labs, uid) == []
    assert stranger in hand_made.ids(labs)
    assert outside not in hand_made.ids(labs)
    labs.account.client("ec2").terminate_instances(InstanceIds=[stranger])
