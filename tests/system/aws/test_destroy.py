"""destroy on AWS without Terraform's help: whatever was lost, everything of ours is found, removed and proved gone."""

from __future__ import annotations

import json

import pytest

from gpucourse.labs.aws import ledger
from gpucourse.labs.destroy import DestroyRequest
from gpucourse.model.deployment import Receipt
from gpucourse.workspace import runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.mock_aws.account import REGION
from tests.mock_aws.asking import launch
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner
from tests.unit.ui.examples import record
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

TERMINATE = "ec2:TerminateInstances"


def destroy_well(learner: CloudLearner, *, module: str | None = "3", discard: bool = False) -> Receipt:
    """`destroy` that ends well: its one receipt."""
    result = hand_made.run_destroy(learner, DestroyRequest(module=module), discard=discard)
    assert result.errors == []
    [receipt] = result.receipts
    return receipt


def test_destroy_without_a_yes_touches_nothing(lab_owner: CloudLearner) -> None:
    result = lab_owner.types("destroy", "3", code=2)
    assert "03-aws-t4" in result.out
    assert "an hour" in result.out
    assert "gpucourse destroy 3 --yes" in result.err
    narrow = lab_owner.types("destroy", "3", "--target", "aws", "--gpu", "t4", "--discard", code=2)
    assert "gpucourse destroy 3 --target aws --gpu t4 --discard --yes" in narrow.err
    assert lab_owner.types("destroy", "--all", "--json", code=2).document["error"]["code"] == "usage"


def test_destroy_with_expired_credentials_stops_before_anything_happens(lab_owner: CloudLearner) -> None:
    lab_owner.account.expire_credentials()
    error = lab_owner.types("destroy", "3", "--yes", "--json", code=3).document["error"]
    assert error["code"] == "credentials"
    assert hand_made.ids(lab_owner)[0] in error["what"]
    assert "an hour" in error["what"]
    assert "aws sso login" in error["hint"]
    assert "gpucourse destroy 3" in error["hint"]
    assert lab_owner.deployment()["phase"] == "ready"


@pytest.mark.slow
def test_destroy_keeps_a_lab_whose_outputs_cannot_be_collected(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    run = record(id="20261121-101500-away", stack=lab.stack, mode="aws", nodes=["node0"], collected=False)
    runs.save(WorkspacePaths(learner.workspace), run)
    hand_made.cut_off(learner)
    result = learner.types("destroy", "3", "--yes", code=7)
    assert "meanwhile 03-aws-t4 costs about $0." in result.err
    assert "gpucourse allow-ip 3" in result.err
    assert "gpucourse destroy 3 --discard" in result.err
    assert len(hand_made.ids(learner)) == 1
    assert destroy_well(learner, discard=True).outputs_discarded == ["20261121-101500-away: discarded with --discard"]
    assert learner.list_resources() == []


@pytest.mark.slow
def test_destroy_of_a_lab_whose_state_is_lost_removes_it_and_nothing_else(learner: CloudLearner) -> None:
    stranger = launch(learner.account)
    lab = hand_made.lab(learner, nodes=2)
    learner.account.deny("scheduler:DeleteScheduleGroup")  # a group that ends nothing any more, and costs nothing
    result = learner.types("destroy", "3", "--yes")
    assert hand_made.ids(learner) == [stranger]
    assert {resource.kind for resource in learner.list_resources()} == {"instance", "volume", "network interface"}
    assert "nothing is left" in result.out
    [file] = (learner.workspace / "receipts").glob("*.json")
    receipt = json.loads(file.read_text())
    assert (receipt["leftovers"], receipt["regions"], receipt["uid"]) == ([], [REGION], lab.uid)
    assert float(receipt["cost_usd"]) > 0
    assert ledger.read(WorkspacePaths(learner.workspace).ledger).open() == ()
    assert learner.deployment() == {}


@pytest.mark.slow
def test_destroy_finds_a_lab_whose_record_is_lost(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    (learner.workspace / ".gpucourse/deployments/03-aws-t4.json").unlink()
    result = learner.types("destroy", "--all", code=2)
    assert "not in its records" in result.out
    assert hand_made.ids(learner)[0] in result.out
    receipt = destroy_well(learner, module="3")
    assert learner.list_resources() == []
    assert (receipt.stack, receipt.module, receipt.created) == (lab.uid, "3", "")


@pytest.mark.slow
def test_destroy_that_may_not_look_calls_nothing_gone(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    learner.account.deny("ec2:DescribeVolumes")
    result = learner.types("destroy", "3", "--yes", code=8)
    assert "volume  unknown in us-east-2 (not allowed to look: ec2:DescribeVolumes)" in result.out
    assert "\naws ec2 describe-volumes --region us-east-2" in result.out
    assert "volume unknown" in result.err
    assert learner.deployment()["phase"] == "destroying"
    assert learner.list_resources("instance") == []
    learner.account.calm()
    destroy_well(learner)
    assert learner.deployment() == {}


@pytest.mark.slow
def test_destroy_of_a_lab_whose_node_ended_itself_says_why(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, spot=True)
    [instance] = hand_made.ids(learner)
    run = record(id="20261121-101500-spot", stack=lab.stack, mode="aws", nodes=["node0"], collected=False)
    runs.save(WorkspacePaths(learner.workspace), run)
    learner.account.interrupt(instance)
    receipt = destroy_well(learner)
    assert "AWS took the spot instance back" in receipt.ended[0]
    assert instance in receipt.outputs_discarded[0]
    assert learner.list_resources() == []


@pytest.mark.slow
def test_destroy_after_a_killed_destroy_finishes(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    learner.account.hold(TERMINATE, after=True)
    process = learner.begins("destroy", "3", "--yes")
    until(lambda: TERMINATE in learner.account.list_held_calls(), "the instance is being terminated")
    process.kill()
    process.communicate(timeout=STUCK_S)
    learner.account.release()
    destroy_well(learner)
    assert learner.list_resources() == []
    assert learner.deployment() == {}
