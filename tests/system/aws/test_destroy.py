"""`destroy` on AWS without Terraform's help: whatever was lost, all our resources are found and removed."""

from __future__ import annotations

import json

import pytest

from gpucourse.labs.aws import ledger
from gpucourse.labs.destroy import DestroyRequest
from gpucourse.model.deployment import Receipt
from gpucourse.workspace.paths import WorkspacePaths
from tests.mock_aws.account import REGION
from tests.mock_aws.asking import launch
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner

pytestmark = pytest.mark.system


def destroy_well(learner: CloudLearner, *, module: str | None = "3", discard: bool = False) -> Receipt:
    """Run a `destroy` that succeeds, and return its only receipt."""
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
def test_destroy_of_a_lab_whose_state_is_lost_removes_it_and_nothing_else(learner: CloudLearner) -> None:
    stranger = launch(learner.account)
    lab = hand_made.lab(learner, nodes=2)
    learner.account.deny("scheduler:DeleteScheduleGroup")  # a schedule group that no longer ends anything, and costs nothing
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
