from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpucourse.aws import instances
from gpucourse.context import Context
from gpucourse.labs.aws import termination_reason
from gpucourse.labs.aws.termination_reason import describe_termination, explain_end, find_lost_nodes, select_lab_instances
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.node import Inventory
from tests.unit.labs.aws.fakes import deployment_of, node
from tests.unit.labs.aws.test_failure_report import WITHOUT_CREDENTIALS

DEADLINE = datetime(2026, 11, 21, 18, 0, tzinfo=UTC)
SHUTDOWN = "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
USER = "Client.UserInitiatedShutdown: User initiated shutdown"
SPOT = "Server.SpotInstanceTermination: Spot instance termination"


def instance(reason: str, minutes: float | None, state: str = "terminated") -> CloudInstance:
    """Return an instance that ended this many minutes after its deadline."""
    return CloudInstance(
        id="i-1",
        node="node0",
        instance_type="g4dn.xlarge",
        region="us-east-2",
        zone="us-east-2a",
        market="spot",
        state=state,
        launched=DEADLINE - timedelta(hours=4),
        ended=None if minutes is None else DEADLINE + timedelta(minutes=minutes),
        reason=reason,
        reason_code=reason.partition(":")[0],
    )


@pytest.mark.parametrize(
    ("reason", "minutes", "words"),
    [
        (SPOT, -60, "AWS reclaimed the spot instance"),
        (SHUTDOWN, 1, "its deadline passed"),
        (SHUTDOWN, -60, "it powered itself off, because it was idle or because of a command"),
        (USER, 5, "a person ended it through the account"),
        (USER, 10, "AWS ended it after its deadline (the backstop)"),
        (USER, None, "a person ended it through the account"),
        ("Server.InternalError: Internal error on launch", -60, "Server.InternalError: Internal error on launch"),
        ("", -60, "AWS says only that it is terminated"),
    ],
)
def test_explain_end_says_why_an_instance_is_gone(reason: str, minutes: float | None, words: str) -> None:
    assert explain_end(instance(reason, minutes), DEADLINE.isoformat()) == words


def test_describe_termination_names_a_stop_and_a_lab_without_a_deadline() -> None:
    assert explain_end(instance(USER, -60, "stopped"), DEADLINE.isoformat()) == "a person stopped it through the account"
    assert explain_end(instance(USER, 60), "") == "a person ended it through the account"
    line = describe_termination(instance(SPOT, 0), DEADLINE.isoformat())
    assert line == "node0 (i-1): AWS reclaimed the spot instance, 2026-11-21 18:00 UTC"


def test_select_lab_instances_leaves_out_a_node_that_was_removed_on_purpose() -> None:
    lab = deployment_of("2")
    lost_instances = [replace(instance(USER, -60), node=name) for name in ("node1", "node2")]
    assert select_lab_instances(lab, lost_instances) == lost_instances, "what nobody knows yet is told"
    lab.inventory = Inventory(stack=lab.stack, nodes=(node("node0", role="head"), node("node1")))
    assert [reason.node for reason in select_lab_instances(lab, lost_instances)] == ["node1"]


def test_find_lost_nodes_names_those_that_the_account_no_longer_has(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = deployment_of(expires=DEADLINE.isoformat())
    lab.inventory = Inventory(stack=lab.stack, nodes=(node("node0", role="head"), node("node1"), node("node2")))
    cloud_instances = [instance(USER, None, "stopped"), replace(instance(SPOT, 0), node="node1")]
    monkeypatch.setattr(termination_reason, "account_of", lambda _environ, _lab: None)
    monkeypatch.setattr(instances, "find", lambda _account, stack: cloud_instances)
    assert find_lost_nodes(context, lab) == {
        "node1": "node1 (i-1): AWS reclaimed the spot instance, 2026-11-21 18:00 UTC",
        "node2": "node2: AWS no longer lists it",
    }
    monkeypatch.undo()
    assert find_lost_nodes(replace(context, environ=WITHOUT_CREDENTIALS), lab) == {}
