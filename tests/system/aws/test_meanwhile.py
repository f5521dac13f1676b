"""A lab on AWS between deploy and destroy: what it looks like, pause and return, more time, another address, a hold."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gpucourse.aws import ingress, resource_scan, schedule
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, UsageError
from gpucourse.labs import change
from gpucourse.labs.aws import allow_ip, extend, stop_start
from gpucourse.labs.aws.lost_nodes import find_lost_nodes
from gpucourse.labs.aws.status import Outlook
from gpucourse.labs.status import Status, status
from gpucourse.model.deployment import AwsDeployment, LocalDeployment, Reservation
from gpucourse.workspace import deployments, ledger, runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.mock_aws.account import REGION
from tests.mock_aws.asking import describe_instance, launch
from tests.mock_aws.shared import GRAPHICS
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner
from tests.unit.ui.examples import record

pytestmark = pytest.mark.system


def root(learner: CloudLearner, instance: str) -> Path:
    return Path(learner.account.computer(instance)["root"]) / "var/lib/gpucourse"


def read_status(learner: CloudLearner, *, ask_nodes: bool = False) -> Status:
    return status(hand_made.context(learner), ask_nodes=ask_nodes)


def outlook(learner: CloudLearner, *, ask_nodes: bool = False) -> Outlook:
    [stack] = read_status(learner, ask_nodes=ask_nodes).stacks
    assert stack.cloud is not None
    return stack.cloud


def load_stored(learner: CloudLearner, lab: AwsDeployment) -> AwsDeployment:
    deployment = deployments.load_as(WorkspacePaths(learner.workspace), lab.stack, AwsDeployment)
    assert deployment is not None
    return deployment


def test_status_tells_the_nodes_the_money_and_every_killer(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, nodes=2)
    account = Account(REGION, learner.environment)
    first, second = hand_made.ids(learner)
    tags = {"Project": "gpucourse", "Course": hand_made.identity(learner), "Stack": lab.uid}
    assert schedule.arm(account, [first, second], datetime.fromisoformat(lab.cloud.expires), wanted=tags).state == "ok"
    (root(learner, first) / "idle.json").write_text(json.dumps({"now": time.time(), "busy": ["SSH sessions: 1"], "boot": "b"}))
    (root(learner, second) / "idle.json").write_text(json.dumps({"now": time.time(), "ends_at": time.time() + 719}))
    typed = learner.types("status")
    assert "✓ healthy  running\n" in typed.out
    assert f"instances   node0 {first}, node1 {second}" in typed.out
    assert "$1.53 an hour" in typed.out
    assert "deadline    in 3 h 59 min" in typed.out
    assert "idle agent  node0: in use (SSH sessions: 1)\n              node1: idle; ends it in 11 min" in typed.out
    assert "backstop    AWS itself ends it at 20" in typed.out
    [stack] = learner.documents("status")["stacks"]
    assert stack["healthy"] is True
    assert stack["cloud"]["usd_per_hour"].startswith("1.5")
    assert outlook(learner).idle == []  # not asked: to the agent a connection is somebody at work


def test_an_account_that_does_not_say_is_unknown_and_never_healthy(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    learner.account.deny("ec2:DescribeInstances")
    [stack] = read_status(learner).stacks
    assert not stack.healthy
    assert [(node.healthy, node.known) for node in stack.nodes] == [(False, False)]
    assert "ec2:DescribeInstances" in outlook(learner).unknown
    learner.account.calm()
    learner.account.expire_credentials()
    typed = learner.types("status")
    assert "unknown" in typed.out
    assert "the AWS credentials have expired" in typed.out
    assert "healthy" not in typed.out


def test_an_account_that_is_not_the_labs_own_is_told(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    lab.cloud.account = "210987654321"
    deployments.save(WorkspacePaths(learner.workspace), lab)
    assert "is in the AWS account 210987654321" in outlook(learner).unknown
    typed = learner.types("destroy", "3", "--yes", code=3)
    assert "210987654321" in typed.err
    assert len(hand_made.ids(learner)) == 1
    assert find_lost_nodes(hand_made.context(learner), replace(lab, uid="out-of-sight")) == {}, (
        "another account lists none of it"
    )
    lab.cloud.account = hand_made.ACCOUNT
    deployments.save(WorkspacePaths(learner.workspace), lab)


def test_what_ended_says_why_and_what_no_record_knows_is_told(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, nodes=2, spot=True)
    second = hand_made.ids(learner)[1]
    learner.account.interrupt(second)
    untracked = hand_made.instance(learner, hand_made.tags_of(learner, "another"))
    status_now = read_status(learner)
    cloud = status_now.stacks[0].cloud
    assert cloud is not None
    assert "AWS took the spot instance back" in cloud.ended[0]
    assert [node.healthy for node in status_now.stacks[0].nodes] == [True, False]
    assert untracked in status_now.warnings[0]
    first = hand_made.ids(learner)[0]
    learner.account.shut_down(first if first != untracked else hand_made.ids(learner)[1])
    lost = outlook(learner)
    assert (len(lost.ended), lost.stopped) == (2, False)
    assert "gpucourse deploy 3 --target aws" in learner.types("status").out
    spans = ledger.read(WorkspacePaths(learner.workspace).ledger).spans
    [ended] = [span for span in spans if span.charge.item == second]
    assert ended.ended is not None
    assert "Spot" in ended.reason
    assert lab.uid == ended.charge.stack


def test_a_lost_record_shows_in_the_ledger(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    deployments.drop(WorkspacePaths(learner.workspace), lab.stack)
    [warning] = read_status(learner).warnings
    assert hand_made.ids(learner)[0] in warning
    assert "gpucourse leaks" in warning


def test_a_lab_stops_and_starts_with_new_addresses_and_the_same_keys(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, nodes=2)
    before = learner.inventory()
    stopped = learner.documents("stop", "3")
    assert stopped["usd_per_hour"].startswith("0.0")
    assert {describe_instance(learner.account, instance)["State"]["Name"] for instance in hand_made.ids(learner)} == {"stopped"}
    assert read_status(learner).stacks[0].cloud.stopped  # type: ignore[union-attr]  # it is a lab on AWS
    assert "gpucourse start 3" in learner.types("run", "3.1", code=3).err
    more = extend.more_time(hand_made.context(learner), "3", 3600)
    extend.extend(hand_made.context(learner), more)
    typed = learner.types("start", "3", timeout=280)
    assert "03-aws-t4 is back" in typed.out
    after = learner.inventory()
    for old, new in zip(before, after, strict=True):
        assert new["address"] != old["address"]
        assert new["host_key"] == old["host_key"]
        assert new["address"] in typed.out
    folder = learner.workspace / ".gpucourse/stacks/03-aws-t4"
    assert after[0]["address"] in (folder / "ssh_config").read_text()
    assert after[0]["host_key"] in (folder / "known_hosts").read_text()
    assert learner.types("ssh", "3", "--", "echo", "hello").out == "hello\n"
    marks = [(root(learner, instance) / "deadline").read_text() for instance in hand_made.ids(learner)]
    assert marks == [f"{more.expires.timestamp():.0f}\n"] * 2
    assert (load_stored(learner, lab).phase, load_stored(learner, lab).cloud.stopped) == ("ready", False)


@pytest.mark.slow
def test_a_stopped_lab_that_nothing_ends_says_so(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    context = hand_made.context(learner)
    for backstop, words in (("", "AWS ends it at"), ("iam:CreateRole was refused", "cost until you type gpucourse destroy 3")):
        lab = load_stored(learner, lab)
        lab.cloud.backstop = backstop
        deployments.save(context.paths, lab)
        assert words in stop_start.stop(context, "3").warnings[0]


def test_no_room_at_the_start_is_told_and_the_lab_stays_stopped(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    context = hand_made.context(learner)
    stop_start.stop(context, "3")
    learner.account.fail("ec2:StartInstances", "InsufficientInstanceCapacity")
    with pytest.raises(CloudError, match="no room for g4dn") as refused:
        stop_start.start(context, "3")
    assert "gpucourse start 3" in refused.value.hint
    assert learner.deployment()["cloud"]["stopped"] is True


def test_a_start_beyond_the_budget_is_refused_as_a_deploy_is(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    stop_start.stop(hand_made.context(learner), "3")
    learner.sets(budget_usd=3)
    typed = learner.types("start", "3", "--gpu", "t4", code=2)
    assert "this would cost $6.1" in typed.err
    assert "$2.99 of the budget of $3.00 is left" in typed.err
    assert "gpucourse start 3 --gpu t4 --yes-over-budget" in typed.err
    assert describe_instance(learner.account, hand_made.ids(learner)[0])["State"]["Name"] == "stopped"
    assert load_stored(learner, lab).cloud.stopped
    learner.account.fail("ec2:StartInstances", "InsufficientInstanceCapacity")
    assert "no room for g4dn" in learner.types("start", "3", "--yes-over-budget", code=6).err
    assert load_stored(learner, lab).cloud.reservation is None


def test_what_a_start_set_aside_is_in_the_ledger_at_its_end(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    context = hand_made.context(learner)
    stop_start.stop(context, "3")
    learner.account.fail("ec2:StartInstances", "UnauthorizedOperation", after=True)
    assert learner.types("start", "3", code=None).code != 0
    assert ledger.read(context.paths.ledger).of(lab.uid).per_hour() > 0.7, "it runs all the same"
    lab = load_stored(learner, lab)
    assert lab.cloud.reservation is None
    lab.cloud.reservation = Reservation(usd_per_hour="9", until=lab.cloud.expires)  # of a start that was killed
    deployments.save(context.paths, lab)
    assert stop_start.start(context, "3").title == "03-aws-t4 is back"
    assert load_stored(learner, lab).cloud.reservation is None


@pytest.mark.slow
def test_a_lab_whose_time_is_over_is_not_started(learner: CloudLearner) -> None:
    hand_made.lab(learner, hours=0.1)
    context = hand_made.context(learner)
    stop_start.stop(context, "3")
    with pytest.raises(UsageError, match="is over in 6 minutes") as refused:
        stop_start.start(context, "3")
    assert "gpucourse extend 3 2h" in refused.value.hint


def test_what_cannot_be_stopped(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, spot=True)
    context = hand_made.context(learner)
    with pytest.raises(UsageError, match="spot instances, which cannot be stopped"):
        stop_start.stop(context, "3")
    lab.cloud.market = "on-demand"
    deployments.save(context.paths, lab)
    kept = record(id="20261121-101500-busy", stack=lab.stack, mode="aws", nodes=["node0"], state="running", collected=False)
    runs.save(context.paths, kept)
    file = learner.workspace / ".gpucourse/deployments/03-aws-t4.json"
    text = file.read_text()
    file.write_text(text.replace("ssh_proxy.py", "no_such_proxy.py"))
    with pytest.raises(UsageError, match="run 20261121-101500-busy is under way") as refused:
        stop_start.stop(context, "3")
    assert "gpucourse cancel" in refused.value.hint
    file.write_text(text)
    kept.state, kept.collected = "cancelled", True
    runs.save(context.paths, kept)


def test_more_time_reaches_every_killer(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner, nodes=2)
    account = Account(REGION, learner.environment)
    tags = hand_made.tags_of(learner, lab.uid, Expires=lab.cloud.expires)
    before = datetime.fromisoformat(lab.cloud.expires)
    schedule.arm(account, hand_made.ids(learner), before, wanted=tags)
    done = learner.documents("extend", "3", "90m")
    after = before + timedelta(minutes=90)
    assert done["warnings"] == []
    assert datetime.fromisoformat(done["expires"]) == after
    assert datetime.fromisoformat(learner.deployment()["cloud"]["expires"]) == after
    assert {(root(learner, item) / "deadline").read_text() for item in hand_made.ids(learner)} == {f"{after.timestamp():.0f}\n"}
    assert set(schedule.read_scheduled_ends(account, stack=lab.uid).values()) == {after + schedule.AFTER}
    ends = {item.kind: item.tags["Expires"] for item in resource_scan.find(account, stack=lab.uid) if "Expires" in item.tags}
    assert set(ends.values()) == {after.isoformat(timespec="seconds")}
    assert {"instance", "volume", "VPC", "security group", "key pair", "schedule group"} <= ends.keys()


@pytest.mark.slow
def test_more_time_has_a_limit_and_a_price(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    assert "gpucourse extend 3 68h is the most" in learner.types("extend", "3", "70h", code=2).err
    learner.sets(budget_usd=2)
    typed = learner.types("extend", "3", "2h", code=2)
    assert "More time than the budget allows" in typed.out
    assert "this would cost $4." in typed.err
    assert "$1.99 of the budget of $2.00 is left" in typed.err
    assert "gpucourse extend 3 120m --yes-over-budget" in typed.err
    assert "has more time" in learner.types("extend", "3", "1h", "--yes").out
    assert "has more time" in learner.types("extend", "3", "1h", "--yes-over-budget").out
    learner.sets(budget_usd=None)
    for wrong in ("soon", "0"):
        assert "gpucourse extend 3 2h" in learner.types("extend", "3", wrong, code=2).err


def test_a_request_for_quota_counts_the_nodes_that_run_as_a_deploy_does(learner: CloudLearner) -> None:
    hand_made.lab(learner, nodes=2)
    launch(learner.account)  # somebody else's, in the same family
    learner.account.quota(GRAPHICS, 20)
    refused = learner.types("deploy", "3", "--target", "aws", "--nodes", "3", "--yes", code=3)
    assert "needed 8 vCPU, limit 20, in use 20" in refused.err
    ask = next(line for line in refused.err.splitlines() if "--request-quota" in line)
    assert "--module 3" in ask
    learner.types("doctor", "--request-quota", "--module", "3", "--nodes", "3", "--yes")
    assert [call.params["DesiredValue"] for call in learner.account.calls("RequestServiceQuotaIncrease")] == [28]
    document = learner.types("doctor", "--target", "aws", "--module", "3", "--json").document
    [family] = [finding for finding in document["findings"] if finding["what"] == f"quota {GRAPHICS} (on-demand)"]
    assert (family["state"], "needed 0 vCPU" in family["detail"]) == ("ok", True)


def test_another_address_and_no_wider_one(learner: CloudLearner) -> None:
    lab = hand_made.lab(learner)
    context = hand_made.context(learner)
    assert (
        allow_ip.allow_ip(context, "3", cidr="198.51.100.4/32")
        .changed[0]
        .startswith("198.51.100.4/32 instead of 203.0.113.7/32")
    )
    assert ingress.list_allowed_addresses(Account(REGION, learner.environment), stack=lab.uid) == ["198.51.100.4/32"]
    assert learner.deployment()["cloud"]["ssh_cidr"] == "198.51.100.4/32"
    assert "was allowed already" in allow_ip.allow_ip(context, "3", cidr="198.51.100.4/32").changed[0]
    with pytest.raises(UsageError):
        allow_ip.allow_ip(context, "3", cidr="0.0.0.0/0")


def test_a_hold_is_set_and_lifted(learner: CloudLearner) -> None:
    hand_made.lab(learner)
    context = hand_made.context(learner)
    hold = root(learner, hand_made.ids(learner)[0]) / "hold"
    extend.keep(context, "3", 7200)
    assert float(hold.read_text()) == pytest.approx(time.time() + 7200, abs=30)
    assert "its deadline comes first" in extend.keep(context, "3", 20 * 3600).warnings[0]
    assert "watch it again" in extend.keep(context, "3", 0).changed[0]
    assert not hold.exists()


def test_without_a_lab_on_aws_the_way_to_one_is_told(learner: CloudLearner) -> None:
    assert "gpucourse deploy 3 --target aws" in learner.types("stop", "3", code=3).err
    local = LocalDeployment(
        stack="03-local", uid="u", module="3", template="simulated", phase="ready", created=hand_made.utc(0),
        updated=hand_made.utc(0), nodes_wanted=1,
    )  # fmt: skip
    context = hand_made.context(learner)
    deployments.save(context.paths, local)
    verbs = (
        lambda: change.stop(context, "3"),
        lambda: change.start(context, "3"),
        lambda: change.more_time(context, "3", 3600),
        lambda: change.keep(context, "3", 3600),
        lambda: change.allow_ip(context, "3"),
    )
    for act in verbs:
        with pytest.raises(UsageError, match="simulated nodes cost nothing"):
            act()
    deployments.drop(context.paths, "03-local")
