"""`status` of labs on AWS: the account is queried, not only this machine's records."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from datetime import datetime

import pytest

from gpucourse.aws import schedule
from gpucourse.aws.session import Account
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.status import Outlook
from gpucourse.labs.aws.termination_reason import find_lost_nodes
from gpucourse.labs.status import Status, status
from gpucourse.workspace import deployments
from gpucourse.workspace.paths import WorkspacePaths
from tests.mock_aws.account import REGION
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner

pytestmark = pytest.mark.system


def read_status(learner: CloudLearner) -> Status:
    return status(hand_made.context(learner), ask_nodes=False)


def read_outlook(learner: CloudLearner) -> Outlook:
    [stack] = read_status(learner).stacks
    assert stack.cloud is not None
    return stack.cloud


def test_status_shows_the_nodes_the_cost_and_everything_that_ends_them(lab_owner: CloudLearner) -> None:
    lab = hand_made.read_record(lab_owner)
    account = Account(REGION, lab_owner.environment)
    first, second = hand_made.ids(lab_owner)
    tags = hand_made.tags_of(lab_owner, lab.uid)
    assert schedule.arm(account, [first, second], datetime.fromisoformat(lab.cloud.expires), project_tags=tags).state == "ok"
    busy = {"now": time.time(), "busy": ["SSH sessions: 1"], "boot": "b"}
    (hand_made.state_folder(lab_owner, first) / "idle.json").write_text(json.dumps(busy))
    idle = {"now": time.time(), "ends_at": time.time() + 719}
    (hand_made.state_folder(lab_owner, second) / "idle.json").write_text(json.dumps(idle))
    result = lab_owner.types("status")
    assert "✓ healthy  running\n" in result.out
    assert f"instances   node0 {first}, node1 {second}" in result.out
    assert "$1.54 an hour" in result.out
    assert "deadline    in 3 h 5" in result.out
    assert re.search(r"idle agent  node0: in use \(SSH sessions: 1\)\n {14}node1: idle; will be ended in \d+ min", result.out)
    assert "backstop    AWS itself ends it at 20" in result.out
    [stack] = lab_owner.documents("status")["stacks"]
    assert stack["healthy"] is True
    assert stack["cloud"]["usd_per_hour"].startswith("1.5")
    assert read_outlook(lab_owner).idle == []  # the agent is not queried, because it takes a connection for a person at work


def test_status_of_an_account_that_does_not_answer_is_unknown_and_never_healthy(lab_owner: CloudLearner) -> None:
    lab_owner.account.deny("ec2:DescribeInstances")
    [stack] = read_status(lab_owner).stacks
    assert not stack.healthy
    assert [(node.healthy, node.known) for node in stack.nodes] == [(False, False)] * 2
    assert "ec2:DescribeInstances" in read_outlook(lab_owner).unknown
    lab_owner.account.calm()
    lab_owner.account.expire_credentials()
    result = lab_owner.types("status")
    assert "unknown" in result.out
    assert "the AWS credentials have expired" in result.out
    assert "healthy" not in result.out


def test_status_and_destroy_name_an_account_that_is_not_the_labs_own(lab_owner: CloudLearner) -> None:
    lab = hand_made.read_record(lab_owner)
    lab.cloud.account = "210987654321"
    deployments.save(WorkspacePaths(lab_owner.workspace), lab)
    assert "is in the AWS account 210987654321" in read_outlook(lab_owner).unknown
    assert "210987654321" in lab_owner.types("destroy", "3", "--yes", code=3).err
    elsewhere = find_lost_nodes(hand_made.context(lab_owner), replace(lab, uid="out-of-sight"))
    assert elsewhere == {}, "another account lists none of it"


def test_status_says_why_a_node_ended_and_lists_what_no_record_has(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, nodes=2, spot=True)
    first, second = hand_made.ids(learner)
    learner.account.interrupt(second)
    untracked = hand_made.instance(learner, hand_made.tags_of(learner, "another"))
    current = read_status(learner)
    cloud = current.stacks[0].cloud
    assert cloud is not None
    assert "AWS reclaimed the spot instance" in cloud.ended[0]
    assert [node.healthy for node in current.stacks[0].nodes] == [True, False]
    assert untracked in current.warnings[0]
    learner.account.shut_down(first)
    outlook = read_outlook(learner)
    assert (len(outlook.ended), outlook.stopped) == (2, False)
    assert "gpucourse deploy 3 --target aws" in learner.types("status").out
    spans = ledger.read(WorkspacePaths(learner.workspace).ledger).spans
    [ended_span] = [span for span in spans if span.charge.item == second]
    assert ended_span.ended is not None
    assert "Spot" in ended_span.reason
    assert lab.uid == ended_span.charge.stack
