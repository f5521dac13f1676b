"""Commands that change an existing lab on AWS: stop and start, another address, a hold."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from gpucourse.errors import UsageError
from gpucourse.labs.aws import change as aws_change
from gpucourse.labs.aws import extend, stop_start
from gpucourse.workspace import deployments, runs
from tests.mock_aws.asking import describe_instance
from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.unit.ui.examples import record

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    with cloud_learner(tmp_path_factory.mktemp("node")) as learner:
        hand_made.lab(learner)
        yield learner


@pytest.fixture
def stopped(one_node: CloudLearner) -> Iterator[CloudLearner]:
    """Yield a learner with a stopped lab of one node."""
    stop_start.stop(hand_made.context(one_node), "3")
    yield one_node
    one_node.account.calm()
    one_node.sets(budget_usd=None)


def read_states(learner: CloudLearner) -> set[str]:
    return {describe_instance(learner.account, instance)["State"]["Name"] for instance in hand_made.ids(learner)}


@pytest.mark.slow
def test_start_after_a_stop_has_new_addresses_the_same_keys_and_the_later_deadline(learner: CloudLearner) -> None:
    hand_made.lab(learner, nodes=2)
    before = learner.inventory()
    pause = learner.documents("stop", "3")
    assert pause["usd_per_hour"].startswith("0.0")
    assert "cost money until you type gpucourse destroy 3" in pause["warnings"][0]
    assert read_states(learner) == {"stopped"}
    assert "gpucourse start 3" in learner.types("run", "3.1", code=3).err
    extension = extend.more_time(hand_made.context(learner), "3", 3600)
    extend.extend(hand_made.context(learner), extension)
    result = learner.types("start", "3", timeout=280)
    assert "03-aws-t4 is running again" in result.out
    after = learner.inventory()
    for old, new in zip(before, after, strict=True):
        assert new["address"] != old["address"]
        assert new["host_key"] == old["host_key"]
        assert new["address"] in result.out
    folder = learner.workspace / ".gpucourse/stacks/03-aws-t4"
    assert after[0]["address"] in (folder / "ssh_config").read_text()
    assert after[0]["host_key"] in (folder / "known_hosts").read_text()
    assert learner.types("ssh", "3", "--", "echo", "hello").out == "hello\n"
    marks = {(hand_made.state_folder(learner, item) / "deadline").read_text() for item in hand_made.ids(learner)}
    assert marks == {f"{extension.expires.timestamp():.0f}\n"}
    lab = hand_made.read_record(learner)
    assert (lab.phase, lab.cloud.stopped) == ("ready", False)


def test_stop_of_a_lab_with_a_backstop_says_when_aws_ends_it(stopped: CloudLearner) -> None:
    context = hand_made.context(stopped)
    lab = hand_made.read_record(stopped)
    lab.cloud.backstop = ""
    deployments.save(context.paths, lab)
    assert "AWS ends it at" in stop_start.stop(context, "3").warnings[0]


def test_start_beyond_the_budget_or_without_room_leaves_the_lab_stopped(stopped: CloudLearner) -> None:
    stopped.sets(budget_usd=3)
    result = stopped.types("start", "3", "--gpu", "t4", code=2)
    assert "this would cost $" in result.err
    assert "of the budget of $3.00 is left" in result.err
    assert "gpucourse start 3 --gpu t4 --yes-over-budget" in result.err
    assert read_states(stopped) == {"stopped"}
    stopped.account.fail("ec2:StartInstances", "InsufficientInstanceCapacity")
    full = stopped.types("start", "3", "--yes-over-budget", code=6)
    assert "AWS has no capacity for g4dn" in full.err
    assert "gpucourse start 3" in full.err
    lab = hand_made.read_record(stopped)
    assert (lab.cloud.stopped, lab.cloud.reservation) == (True, None)


def test_stop_refuses_a_lab_with_a_run(lab_owner: CloudLearner) -> None:
    context = hand_made.context(lab_owner)
    lab = hand_made.read_record(lab_owner)
    hand_made.cut_off(lab_owner)
    run = record(id="20261121-101500-busy", stack=lab.stack, mode="aws", nodes=["node0"], state="running", collected=False)
    runs.save(context.paths, run)
    with pytest.raises(UsageError, match="run 20261121-101500-busy is under way") as error:
        stop_start.stop(context, "3")
    assert "gpucourse cancel" in error.value.hint
    run.state, run.collected = "cancelled", True
    runs.save(context.paths, run)


def test_allow_ip_opens_ssh_to_another_address(lab_owner: CloudLearner) -> None:
    context = hand_made.context(lab_owner)
    [change] = aws_change.allow_ip(context, "3", cidr="198.51.100.4/32").changed
    assert change.startswith("198.51.100.4/32 instead of 203.0.113.7/32")
    assert lab_owner.deployment()["cloud"]["ssh_cidr"] == "198.51.100.4/32"
    assert "was already allowed" in aws_change.allow_ip(context, "3", cidr="198.51.100.4/32").changed[0]


def test_keep_pauses_the_idle_agent_until_it_is_cancelled(lab_owner: CloudLearner) -> None:
    context = hand_made.context(lab_owner)
    hold = hand_made.state_folder(lab_owner, hand_made.ids(lab_owner)[0]) / "hold"
    start = time.time()
    extend.keep(context, "3", 7200)
    assert start + 7200 - 1 <= float(hold.read_text()) <= time.time() + 7200 + 1
    assert "its deadline comes first" in extend.keep(context, "3", 20 * 3600).warnings[0]
    assert "watch it again" in extend.keep(context, "3", 0).changed[0]
    assert not hold.exists()
