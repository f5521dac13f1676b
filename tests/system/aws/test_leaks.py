"""`leaks`: find everything of the course in the account, in every region, and remove only what belongs to no lab."""

from __future__ import annotations

import shutil

import pytest

from tests.mock_aws.asking import launch
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner

pytestmark = pytest.mark.system
FAR = "eu-west-1"  # not a region of the course


def test_leaks_after_a_lost_workspace_finds_and_removes_our_own_things_alone(learner: CloudLearner) -> None:
    stranger = launch(learner.account)
    hand_made.lab(learner)
    hand_made.network(learner, hand_made.tags_of(learner, "far-away"), FAR)
    shutil.rmtree(learner.workspace / ".gpucourse")
    result = learner.types("leaks", code=8)
    assert "they cost $0.7" in result.out
    assert "aws ec2 terminate-instances --region us-east-2" in result.out
    assert FAR in result.out
    result = learner.types("leaks", "--clean", "--yes")
    assert "nothing is left" in result.out
    assert hand_made.ids(learner) == [stranger]
    assert {resource.kind for resource in learner.list_resources()} == {"instance", "volume", "network interface"}
