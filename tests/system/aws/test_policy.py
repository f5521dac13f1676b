"""The policy allows every call that a whole life of a lab makes: ours, and those of Terraform's provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from gpucourse.aws.policy import policy_text
from tests.system.aws.learner import CloudLearner
from tests.unit.aws.test_policy import ADMINISTRATOR

pytestmark = pytest.mark.system

IAM = {"tagging": "tag"}  # what signs a request, and what a policy calls the service


def allowed() -> Iterator[str]:
    for statement in json.loads(policy_text())["Statement"]:
        actions = statement["Action"]
        yield from [actions] if isinstance(actions, str) else actions


def test_every_call_of_a_whole_life_is_in_the_policy(learner: CloudLearner) -> None:
    learner.types("doctor", "--target", "aws", "--spot", code=None)
    learner.types("deploy", "3", "--target", "aws", "--spot", "--yes", timeout=400)
    learner.types("extend", "3", "1h", timeout=120)
    learner.types("allow-ip", "3", code=None, timeout=120)
    learner.types("deploy", "3", "--target", "aws", "--spot", "--nodes", "1", "--yes", code=None, timeout=400)
    learner.types("destroy", "--all", "--yes", timeout=400)
    assert learner.standing() == []
    patterns = list(allowed())
    made = {f"{IAM.get(call.service, call.service)}:{call.action}" for call in learner.account.calls()}
    assert {"ec2:CreateVpc", "ec2:RunInstances", "elasticfilesystem:CreateMountTarget"} <= made
    assert {"ec2:CreatePlacementGroup", "ec2:ImportKeyPair", "ec2:TerminateInstances"} <= made
    refused = sorted(one for one in made - ADMINISTRATOR if not any(fnmatchcase(one, pattern) for pattern in patterns))
    assert refused == []
