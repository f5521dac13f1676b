"""What costs on AWS: leaks in every region, removed only where nothing explains them; the ledger through every loss."""

from __future__ import annotations

import json
import shutil
import signal
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gpucourse.aws import schedule
from gpucourse.aws.session import Account
from gpucourse.errors import UnreachableError
from gpucourse.labs.aws import extend
from gpucourse.labs.aws.cleanup import leaks
from gpucourse.labs.aws.money.budget import read_budget
from gpucourse.labs.aws.money.cost import Cost, cost
from gpucourse.model.deployment import AwsDeployment
from gpucourse.workspace import deployments, ledger, runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.mock_aws.account import REGION
from tests.mock_aws.asking import launch
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner
from tests.unit.ui.examples import record
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system
FAR = "eu-west-1"  # none of the regions that the course knows


def lose_everything(learner: CloudLearner) -> None:
    """The disk with the workspace is gone."""
    shutil.rmtree(learner.workspace / ".gpucourse")


def compute_cost(learner: CloudLearner) -> Cost:
    return cost(hand_made.context(learner))


@pytest.mark.slow
def test_after_a_lost_workspace_only_our_own_things_are_removed(learner: CloudLearner) -> None:
    stranger = launch(learner.account)
    hand_made.lab(learner, nodes=2)
    tags = hand_made.tags_of(learner, "far-away")
    hand_made.network(learner, tags, FAR)
    lose_everything(learner)
    typed = learner.types("leaks", code=8)
    assert "they cost $1.53 an hour" in typed.out
    assert "aws ec2 terminate-instances --region us-east-2" in typed.out
    assert FAR in typed.out
    assert "gpucourse leaks --clean --yes" in learner.types("leaks", "--clean", code=2).err
    typed = learner.types("leaks", "--clean", "--yes")
    assert "nothing is left" in typed.out
    assert hand_made.ids(learner) == [stranger]
    assert {resource.kind for resource in learner.list_resources()} == {"instance", "volume", "network interface"}
    assert "no leaks" in learner.types("leaks").out
    learner.account.client("ec2").terminate_instances(InstanceIds=[stranger])


def test_a_lab_on_record_stands_whatever_is_cleaned(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    untracked = hand_made.instance(learner, hand_made.tags_of(learner, "another"))
    document = learner.types("leaks", "--json", code=8).document
    assert {item["stack"]: item["explained_by"] for item in document["things"]} == {"03-aws-t4": "standing", "another": "leak"}
    assert document["account"] == hand_made.ACCOUNT
    learner.types("leaks", "--clean", "--yes")
    assert untracked not in hand_made.ids(learner)
    assert [item.tags["Stack"] for item in learner.list_resources("instance")] == [lab.uid]


@pytest.mark.slow
def test_the_lab_of_somebody_else_whose_time_is_not_over_is_left_to_them(learner: CloudLearner) -> None:
    theirs = {"Project": "gpucourse", "Course": "cafe", "Stack": "theirs", "Module": "3", "Owner": "grace"}
    nobodys = hand_made.instance(learner, {"Project": "gpucourse"})
    assert "what they cost is not known" in learner.types("leaks", code=8).out
    learner.account.client("ec2").terminate_instances(InstanceIds=[nobodys])
    alive = hand_made.instance(learner, {**theirs, "Expires": hand_made.utc(1)})
    hand_made.network(learner, {**theirs, "Expires": hand_made.utc(-1)})  # more time is written on machines and disks alone
    over = hand_made.instance(learner, {**theirs, "Stack": "over", "Expires": hand_made.utc(-1)})
    context = hand_made.context(learner)
    held = leaks.scan_account(context)
    assert {item.stack: item.state for item in held.things} == {"theirs": "another's", "over": "leak"}
    leaks.clean(context, held)
    assert hand_made.ids(learner) == [alive]
    assert learner.list_resources("vpc")
    assert over not in hand_made.ids(learner)
    receipts, left = leaks.clean(context, leaks.scan_account(context, everyone=True), everyone=True)
    assert (left, [item.stack for item in receipts]) == ([], ["theirs"])
    assert learner.list_resources() == []


def test_what_may_not_be_looked_at_may_leak(learner: CloudLearner) -> None:
    learner.account.deny("elasticfilesystem:DescribeFileSystems")
    typed = learner.types("leaks", code=8)
    assert "not allowed to look: elasticfilesystem:DescribeFileSystems" in typed.out
    assert "Check by hand\naws efs describe-file-systems" in typed.out
    assert "not everything could be checked (file system)" in typed.err


def test_what_cannot_be_removed_is_told_with_the_command(learner: CloudLearner) -> None:
    hand_made.instance(learner, hand_made.tags_of(learner, "stuck"))
    learner.account.deny("ec2:TerminateInstances")
    typed = learner.types("leaks", "--clean", "--yes", code=8)
    assert "2 things of the course are in the account, and no lab on record explains them" in typed.err
    assert "ec2:TerminateInstances" in typed.out
    assert f"aws ec2 terminate-instances --region {REGION} --instance-ids {hand_made.ids(learner)[0]}" in typed.out


def test_the_ledger_outlives_its_nodes_its_record_and_its_lab(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, nodes=2)
    first, second = hand_made.ids(learner)
    learner.account.shut_down(second)
    now = compute_cost(learner)
    spans = {span.charge.item: span for span in ledger.read(WorkspacePaths(learner.workspace).ledger).spans}
    assert spans[second].ended is not None
    assert spans[f"{second}:ipv4"].ended is not None
    assert spans[first].ended is None
    assert sum(span.ended is not None for span in spans.values() if span.charge.kind == "disk") == 1
    assert now.usd_per_hour == pytest.approx(Decimal("0.77"), abs=Decimal("0.01"))
    assert [running.stack for running in now.running] == ["03-aws-t4"]
    assert now.running[0].usd_to_end == pytest.approx(Decimal("3.06"), abs=Decimal("0.05"))
    deployments.drop(WorkspacePaths(learner.workspace), lab.stack)
    learner.account.shut_down(first)
    lost = compute_cost(learner)
    assert lost.running == []
    assert lost.usd_per_hour == 0
    assert lost.usd > 0


def test_a_share_for_each_exercise_the_budget_and_the_end(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    at = datetime.fromisoformat(hand_made.utc(0))
    times = {"started": (at - timedelta(hours=2)).isoformat(), "ended": (at + timedelta(hours=1)).isoformat()}
    kept = record(id="20261121-101500-cost", stack=lab.stack, mode="aws", nodes=["node0"], **times)
    kept.created = lab.created = times["started"]
    deployments.save(WorkspacePaths(learner.workspace), lab)
    runs.save(WorkspacePaths(learner.workspace), kept)
    learner.sets(budget_usd=2)
    typed = learner.types("cost")
    assert "not enough until the end" in typed.out
    assert "3.1" in typed.out
    assert "karpenter-provider-aws, 2026-07-20" in typed.out
    assert "gpucourse cost --billed" in typed.out
    document = learner.documents("cost", "--billed")
    assert document["exercises"][0]["name"] == "3.1"
    assert document["billed"]["requests"] == 1
    assert len(learner.account.calls("GetCostAndUsage")) == 1
    learner.sets(budget_usd=None)


def test_an_account_that_does_not_answer_leaves_the_ledger(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    learner.account.expire_credentials()
    now = compute_cost(learner)
    assert now.usd > 0
    assert "the figure recorded last" in now.warnings[0]


def interrupt_extend(learner: CloudLearner, action: str, number: signal.Signals, *, after: bool) -> str:
    """`extend 3 2h` gets that signal while a call of this name is held back; gives what it printed."""
    learner.account.hold(action, after=after)
    extending = learner.begins("extend", "3", "2h")
    until(lambda: any(action in call for call in learner.account.list_held_calls()), f"{action} is held back")
    extending.send_signal(number)
    if number == signal.SIGKILL:
        extending.wait(STUCK_S)
    learner.account.calm()
    return extending.communicate(timeout=STUCK_S)[1].decode()


def arm_backstop(learner: CloudLearner, lab: AwsDeployment) -> None:
    tags = hand_made.tags_of(learner, lab.uid)
    account = Account(REGION, learner.environment)
    assert schedule.arm(account, hand_made.ids(learner), datetime.fromisoformat(lab.cloud.expires), wanted=tags).state == "ok"


@pytest.mark.parametrize(
    ("action", "after", "armed", "hours", "moved"),
    [
        ("DescribeVpcs", False, False, 4, False),  # nothing was written yet
        ("CreateTags", True, True, 4, False),  # the backstop has the earlier end
        ("CreateTags", True, False, 6, False),  # the nodes may have the later one
        ("UpdateSchedule", True, True, 6, True),
    ],
    ids=["before all", "with a backstop", "without one", "after all"],
)
def test_what_a_killed_extend_set_aside_follows_the_account(
    learner: CloudLearner, action: str, after: bool, armed: bool, hours: int, moved: bool
) -> None:
    lab = hand_made.lab(learner)
    if armed:
        arm_backstop(learner, lab)
    learner.sets(budget_usd=20)
    interrupt_extend(learner, action, signal.SIGKILL, after=after)
    assert learner.deployment()["cloud"]["reservation"]["until"] > lab.cloud.expires
    learner.account.expire_credentials()
    context = hand_made.context(learner)
    assert read_budget(context, ()).reserved == pytest.approx(Decimal("4.6"), abs=Decimal("0.1")), "nobody answered"
    learner.account.renew_credentials()
    assert read_budget(context, ()).reserved == pytest.approx(Decimal("0.766") * hours, abs=Decimal("0.05"))
    cloud = learner.deployment()["cloud"]
    assert (cloud["expires"] > lab.cloud.expires) == moved
    assert bool(cloud["reservation"]) == (hours == 6 and not moved)
    learner.types("extend", "3", "1h")
    cloud = learner.deployment()["cloud"]
    assert datetime.fromisoformat(cloud["expires"]) == datetime.fromisoformat(lab.cloud.expires) + timedelta(
        hours=3 if moved else 1
    )
    assert cloud["reservation"] is None


def test_the_next_verb_on_a_lab_whose_extend_was_killed_reads_its_end(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    arm_backstop(learner, lab)
    interrupt_extend(learner, "UpdateSchedule", signal.SIGKILL, after=True)
    learner.types("allow-ip", "3", "--ssh-cidr", "198.51.100.4/32")
    cloud = learner.deployment()["cloud"]
    assert cloud["reservation"] is None
    assert datetime.fromisoformat(cloud["expires"]) == datetime.fromisoformat(lab.cloud.expires) + timedelta(hours=2)


def test_an_interrupted_extend_says_when_the_lab_ends(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    said = interrupt_extend(learner, "CreateTags", signal.SIGINT, after=True)
    assert f"it ends at {datetime.fromisoformat(lab.cloud.expires):%Y-%m-%d %H:%M} UTC, on nodes that took it at" in said
    assert "gpucourse extend 3 120m" in said
    assert learner.deployment()["cloud"]["reservation"]["until"] > lab.cloud.expires
    assert "has more time" in learner.types("extend", "3", "2h").out


def test_a_node_that_refuses_the_deadline_leaves_the_earlier_one_for_all(learner: CloudLearner) -> None:
    hand_made.lab(learner, nodes=2)
    context = hand_made.context(learner)
    file = learner.workspace / ".gpucourse/deployments/03-aws-t4.json"
    text = file.read_text()
    nodes = json.loads(text)
    nodes["inventory"]["nodes"][1]["proxy"] = "false"
    file.write_text(json.dumps(nodes))
    before = nodes["cloud"]["expires"]
    with pytest.raises(UnreachableError, match="still ends at") as refused:
        extend.extend(context, extend.more_time(context, "3", 3600))
    assert "node1" in refused.value.what
    assert learner.deployment()["cloud"]["expires"] == before
    ends = {item.tags["Expires"] for item in learner.list_resources("instance")}
    took = Path(learner.account.computer(hand_made.ids(learner)[0])["root"]) / "var/lib/gpucourse/deadline"
    assert (float(took.read_text()), ends) == (datetime.fromisoformat(before).timestamp(), {before}), "node0 had taken it"
    file.write_text(text)


def test_without_a_cloud_nothing_is_asked_and_nothing_costs(learner: CloudLearner) -> None:
    before = len(learner.account.calls())
    assert "simulated nodes are free" in learner.types("cost").out
    assert learner.documents("cost")["usd"] == "0.000000"
    assert len(learner.account.calls()) == before
