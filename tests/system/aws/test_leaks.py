"""`leaks`: what the account holds in every region, removed only if no lab explains it."""

from __future__ import annotations

import shutil

import pytest

from gpucourse.labs.aws import leaks
from tests.mock_aws.account import REGION
from tests.mock_aws.asking import launch
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner

pytestmark = pytest.mark.system
FAR = "eu-west-1"  # none of the regions that the course knows


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


@pytest.mark.slow
def test_leaks_leaves_a_lab_that_is_on_record(lab_owner: CloudLearner) -> None:
    untracked = hand_made.instance(lab_owner, hand_made.tags_of(lab_owner, "another"))
    document = lab_owner.types("leaks", "--json", code=8).document
    assert {item["stack"]: item["explained_by"] for item in document["things"]} == {"03-aws-t4": "standing", "another": "leak"}
    assert document["account"] == hand_made.ACCOUNT
    lab_owner.account.deny("ec2:TerminateInstances")
    stuck = lab_owner.types("leaks", "--clean", "--yes", code=8)
    assert "2 course resources are in the account, and no recorded lab accounts for them" in stuck.err
    assert "ec2:TerminateInstances" in stuck.out
    assert f"aws ec2 terminate-instances --region {REGION} --instance-ids {untracked}" in stuck.out
    lab_owner.account.calm()
    assert "gpucourse leaks --clean --yes" in lab_owner.types("leaks", "--clean", code=2).err
    lab_owner.types("leaks", "--clean", "--yes")
    assert untracked not in hand_made.ids(lab_owner)


@pytest.mark.slow
def test_leaks_leaves_the_lab_of_another_person_until_its_time_is_over(learner: CloudLearner) -> None:
    foreign_tags = {"Project": "gpucourse", "Course": "cafe", "Stack": "theirs", "Module": "3", "Owner": "grace"}
    untagged = hand_made.instance(learner, {"Project": "gpucourse"})
    assert "what they cost is not known" in learner.types("leaks", code=8).out
    learner.account.client("ec2").terminate_instances(InstanceIds=[untagged])
    alive = hand_made.instance(learner, {**foreign_tags, "Expires": hand_made.utc(1)})
    hand_made.network(
        learner, {**foreign_tags, "Expires": hand_made.utc(-1)}
    )  # more time is written on machines and disks alone
    expired_id = hand_made.instance(learner, {**foreign_tags, "Stack": "over", "Expires": hand_made.utc(-1)})
    context = hand_made.context(learner)
    scan = leaks.scan_account(context)
    assert {item.stack: item.state for item in scan.things} == {"theirs": "another's", "over": "leak"}
    leaks.clean(context, scan)
    assert hand_made.ids(learner) == [alive]
    assert learner.list_resources("vpc")
    assert expired_id not in hand_made.ids(learner)
    receipts, remaining = leaks.clean(context, leaks.scan_account(context, everyone=True), everyone=True)
    assert (remaining, [item.stack for item in receipts]) == ([], ["theirs"])
    assert learner.list_resources() == []
