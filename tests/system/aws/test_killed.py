"""Killed, or told to stop, while an instance is being made: the next command finds what nobody remembers."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


def _holds_a_launch(learner: CloudLearner) -> bool:
    return "ec2:RunInstances" in learner.account.list_held_calls()


def _terraform(learner: CloudLearner, stack: str) -> int:
    lock = learner.workspace / ".gpucourse/stacks" / stack / "terraform.lock"
    return int(json.loads(lock.read_text())["pid"])


@pytest.mark.slow
def test_killed_while_an_instance_is_made_then_deployed_again(learner: CloudLearner, tmp_path: Path) -> None:
    learner.environ["GPUCOURSE_COURSE"] = str(write_course(tmp_path / "course"))
    learner.account.hold("RunInstances", after=True, nth=2)  # the first one is the preflight's, which starts nothing
    deploy = learner.begins("deploy", "1", "--target", "aws", "--yes")
    until(lambda: _holds_a_launch(learner), "a launch under way")
    os.kill(deploy.pid, signal.SIGKILL)
    os.kill(_terraform(learner, "01-aws-t4"), signal.SIGKILL)
    deploy.communicate()
    learner.account.calm()
    [orphan] = learner.list_resources("instance")
    assert learner.deployment("01-aws-t4")["phase"] == "creating"

    again = learner.types("deploy", "1", "--target", "aws", "--yes", timeout=400)
    assert "that an interrupted attempt left" in again.err
    [instance] = learner.list_resources("instance")
    assert instance.id != orphan.id
    assert learner.deployment("01-aws-t4")["phase"] == "ready"

    learner.account.hold("RunInstances", nth=2)
    stopped = learner.begins("deploy", "4", "--target", "aws", "--yes")
    until(lambda: _holds_a_launch(learner), "a launch under way")
    stopped.send_signal(signal.SIGINT)
    said = stopped.communicate(timeout=STUCK_S)[1].decode()
    assert stopped.returncode == 130, said
    assert "deploying 04-aws-t4 was interrupted" in said
    assert "an hour" in said
    assert "gpucourse destroy 4" in said
    learner.account.calm()

    learner.types("destroy", "--all", "--yes", timeout=400)
    assert learner.list_resources() == []
