"""destroy on AWS without Terraform's help: whatever was lost, everything of ours is found, removed and proved gone."""

from __future__ import annotations

import json

import pytest

from gpucourse.errors import GpucourseError
from gpucourse.labs.destroy import DestroyRequest
from gpucourse.model.deployment import Receipt
from gpucourse.workspace import ledger, runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.mock_aws.account import REGION
from tests.mock_aws.asking import launch
from tests.parts import slow_after
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner
from tests.unit.ui.examples import record
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


def destroy_well(learner: CloudLearner, *, module: str | None = "3", discard: bool = False) -> Receipt:
    """`destroy` that ends well: its one receipt."""
    result = hand_made.run_destroy(learner, DestroyRequest(module=module), discard=discard)
    assert result.errors == []
    [receipt] = result.receipts
    return receipt


def expect_error(learner: CloudLearner) -> GpucourseError:
    """`destroy 3` that does not: its one error."""
    result = hand_made.run_destroy(learner, DestroyRequest(module="3"))
    [error] = result.errors
    assert result.receipts == []
    return error


def forget(learner: CloudLearner) -> None:
    """The record of the lab is lost."""
    (learner.workspace / ".gpucourse" / "deployments" / "03-aws-t4.json").unlink()


def test_a_lab_whose_state_is_lost_goes_and_nothing_else(learner: CloudLearner) -> None:
    stranger = launch(learner.account)
    lab = hand_made.lab(learner, nodes=2)
    typed = learner.types("destroy", "3", "--yes")
    assert hand_made.ids(learner) == [stranger]
    assert {resource.kind for resource in learner.list_resources()} == {"instance", "volume", "network interface"}, (
        learner.list_resources()
    )
    assert "nothing is left" in typed.out
    [file] = (learner.workspace / "receipts").glob("*.json")
    receipt = json.loads(file.read_text())
    assert (receipt["leftovers"], receipt["regions"], receipt["uid"]) == ([], [REGION], lab.uid)
    assert float(receipt["cost_usd"]) > 0
    assert ledger.read(WorkspacePaths(learner.workspace).ledger).open() == ()
    assert learner.deployment() == {}
    learner.account.client("ec2").terminate_instances(InstanceIds=[stranger])


def test_without_a_yes_and_without_a_terminal_nothing_is_touched(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    typed = learner.types("destroy", "3", code=2)
    assert "03-aws-t4" in typed.out
    assert "an hour" in typed.out
    assert "gpucourse destroy 3 --yes" in typed.err
    narrow = learner.types("destroy", "3", "--target", "aws", "--gpu", "t4", "--discard", code=2)
    assert "gpucourse destroy 3 --target aws --gpu t4 --discard --yes" in narrow.err
    assert learner.types("destroy", "--all", "--json", code=2).document["error"]["code"] == "usage"
    assert len(hand_made.ids(learner)) == 1


@pytest.mark.parametrize("module", slow_after(1, None, "3"))
def test_a_lost_record_hides_nothing(learner: CloudLearner, module: str | None) -> None:
    lab = hand_made.lab(learner)
    forget(learner)
    typed = learner.types("destroy", module or "--all", code=2)
    assert "not in its records" in typed.out
    assert hand_made.ids(learner)[0] in typed.out
    receipt = destroy_well(learner, module=module)
    assert learner.list_resources() == []
    assert (receipt.stack, receipt.module, receipt.created) == (lab.uid, "3", "")


def test_what_may_not_be_looked_at_is_not_called_gone(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    learner.account.deny("ec2:DescribeVolumes")
    typed = learner.types("destroy", "3", "--yes", code=8)
    assert "volume  unknown in us-east-2 (not allowed to look: ec2:DescribeVolumes)" in typed.out
    assert "\naws ec2 describe-volumes --region us-east-2" in typed.out
    assert "volume unknown" in typed.err
    assert learner.deployment()["phase"] == "destroying"
    assert learner.list_resources("instance") == []
    learner.account.calm()
    destroy_well(learner)
    assert learner.deployment() == {}


def test_credentials_that_have_expired_stop_it_before_anything_happens(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    learner.account.expire_credentials()
    error = learner.types("destroy", "3", "--yes", "--json", code=3).document["error"]
    assert error["code"] == "credentials"
    assert hand_made.ids(learner)[0] in error["what"]
    assert "an hour" in error["what"]
    assert "aws sso login" in error["hint"]
    assert "gpucourse destroy 3" in error["hint"]
    assert learner.deployment()["phase"] == "ready"


@pytest.mark.slow
def test_credentials_that_expire_midway_leave_the_ids_and_the_commands(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    [instance] = hand_made.ids(learner)
    learner.account.expire_credentials(after="ec2:TerminateInstances")
    error = expect_error(learner)
    assert error.exit_code == 8
    assert "the AWS credentials have expired" in error.what
    assert instance in error.what
    assert f"aws ec2 terminate-instances --region {REGION} --instance-ids {instance}" in error.hint
    assert learner.deployment()["phase"] == "destroying"
    learner.account.renew_credentials()
    destroy_well(learner)
    assert learner.list_resources() == []


@pytest.mark.parametrize(
    ("end", "words"),
    [
        pytest.param("shut_down", "powered itself off", marks=pytest.mark.slow),
        ("interrupt", "AWS took the spot instance back"),
    ],
)
def test_a_node_that_ended_itself_is_no_error(learner: CloudLearner, end: str, words: str) -> None:
    lab = hand_made.lab(learner, spot=end == "interrupt")
    [instance] = hand_made.ids(learner)
    kept = record(id=f"20261121-101500-{end}", stack=lab.stack, mode="aws", nodes=["node0"], collected=False)
    runs.save(WorkspacePaths(learner.workspace), kept)
    getattr(learner.account, end)(instance)
    receipt = destroy_well(learner)
    assert words in receipt.ended[0]
    assert instance in receipt.outputs_discarded[0]
    assert receipt.leftovers == []


def test_outputs_that_are_not_home_keep_the_lab_and_its_price_is_said(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    kept = record(id="20261121-101500-away", stack=lab.stack, mode="aws", nodes=["node0"], collected=False)
    runs.save(WorkspacePaths(learner.workspace), kept)
    file = learner.workspace / ".gpucourse" / "deployments" / "03-aws-t4.json"
    file.write_text(file.read_text().replace("ssh_proxy.py", "no_such_proxy.py"))
    typed = learner.types("destroy", "3", "--yes", code=7)
    assert "meanwhile 03-aws-t4 costs about $0." in typed.err
    assert "gpucourse allow-ip 3" in typed.err
    assert "gpucourse destroy 3 --discard" in typed.err
    assert len(hand_made.ids(learner)) == 1
    assert destroy_well(learner, discard=True).outputs_discarded == ["20261121-101500-away: discarded with --discard"]
    assert learner.list_resources() == []


@pytest.mark.parametrize(
    "moment", slow_after(1, "ec2:TerminateInstances", "ec2:DescribeInstances", "ec2:DeleteSubnet", "ec2:DeleteVpc")
)
def test_our_own_sudden_death_is_followed_by_a_destroy_that_finishes(learner: CloudLearner, moment: str) -> None:
    hand_made.lab(learner)
    learner.account.hold(moment, after=True)
    typed = learner.begins("destroy", "3", "--yes")
    until(lambda: moment in learner.account.list_held_calls(), f"{moment} is held")
    typed.kill()
    typed.communicate(timeout=STUCK_S)
    learner.account.release()
    destroy_well(learner)
    assert learner.list_resources() == []
    assert learner.deployment() == {}


@pytest.mark.slow
def test_labs_side_by_side_go_together(learner: CloudLearner) -> None:
    for gpu in ("t4", "l4"):
        hand_made.lab(learner, module="4", gpu=gpu)
    result = hand_made.run_destroy(learner, DestroyRequest())
    assert [receipt.stack for receipt in result.receipts] == ["04-aws-l4", "04-aws-t4"]
    assert result.errors == []
    assert learner.list_resources() == []
