from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpucourse.aws import instances
from gpucourse.errors import CloudError, InfrastructureError
from tests.unit.aws.cloud import TAGS, Clock, ScriptedAccount, as_tag_list, error

LAUNCHED = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def make_instance(state: str = "running", **options: Any) -> dict[str, Any]:
    return {
        "InstanceId": "i-0",
        "InstanceType": "g4dn.xlarge",
        "State": {"Name": state},
        "LaunchTime": LAUNCHED,
        "Placement": {"AvailabilityZone": "us-east-2b"},
        "PublicIpAddress": "18.1.2.3",
        "PrivateIpAddress": "10.77.1.4",
        "StateTransitionReason": "",
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeId": "vol-1"}}],
        "Tags": as_tag_list({**TAGS, "Node": "node0", "Expires": "2026-11-21T13:00:00+00:00"}),
        **options,
    }


def account(*descriptions: dict[str, Any]) -> ScriptedAccount:
    return ScriptedAccount(
        {("ec2", "describe_instances"): {"Reservations": [{"Instances": [description]} for description in descriptions]}}
    )


def test_find_reads_what_aws_says_of_an_instance() -> None:
    [instance] = instances.find(account(make_instance(InstanceLifecycle="spot")), stack="s-1")
    assert (instance.id, instance.node, instance.instance_type, instance.zone) == ("i-0", "node0", "g4dn.xlarge", "us-east-2b")
    assert (instance.market, instance.state, instance.launched, instance.alive) == ("spot", "running", LAUNCHED, True)
    assert (instance.address, instance.private_address) == ("18.1.2.3", "10.77.1.4")
    assert (instance.stack, instance.module, instance.expires) == ("s-1", "3", "2026-11-21T13:00:00+00:00")
    assert (instance.ended, instance.reason) == (None, "")


@pytest.mark.parametrize(
    ("state", "message", "code", "reason", "end"),
    [
        (
            "terminated",
            "User initiated (2026-11-21 10:30:05 GMT)",
            "Client.UserInitiatedShutdown: User initiated shutdown",
            "User",
            5405,
        ),
        ("terminated", "", "Client.InstanceInitiatedShutdown: Instance initiated shutdown", "Instance initiated", None),
        ("stopped", "User initiated (2026-11-21 10:00:00 GMT)", "", "User initiated", 3600),
        ("running", "User initiated (2026-11-20 10:00:00 GMT)", "", "", None),  # stopped once, and started since
    ],
)
def test_find_says_why_and_when_an_instance_ended(state: str, message: str, code: str, reason: str, end: int | None) -> None:
    item = make_instance(
        state, StateTransitionReason=message, StateReason={"Code": code.split(":", maxsplit=1)[0], "Message": code}
    )
    [instance] = instances.find(account(item), stack="s-1")
    assert reason in instance.reason
    assert instance.ended == (LAUNCHED + timedelta(seconds=end) if end else None)
    assert instance.alive == (state != "terminated")


def script_states(*states: str) -> ScriptedAccount:
    remaining = list(states)

    def answer(_parameters: dict[str, Any]) -> Any:
        state = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if state == "unknown":
            return error("InvalidInstanceID.NotFound")
        if state[0].isupper():
            return error(state)
        return {"Reservations": [{"Instances": [make_instance(state, StateReason={"Message": "because"})]}]}

    return ScriptedAccount({("ec2", "describe_instances"): answer})


@pytest.mark.parametrize("first_answer", ["unknown", "RequestLimitExceeded", "InternalError"])
def test_wait_ends_with_the_state_after_an_error_that_passes(first_answer: str) -> None:
    clock = Clock()
    account = script_states(first_answer, "pending", "running")
    [states] = instances.wait(account, ["i-0"], "running", sleep=clock.sleep, clock=clock)
    assert states.state == "running"
    assert clock.now == 2 * instances.POLL_S


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["RequestLimitExceeded"], "limits the number of requests"),
        (["pending", "terminated"], r"i-0 \(because\)"),
        (["stopping"], "is stopping"),
    ],
    ids=["error", "ended", "too slow"],
)
def test_wait_ends_with_the_reason_when_the_state_is_not_reached(states: list[str], words: str) -> None:
    clock = Clock()
    with pytest.raises((CloudError, InfrastructureError), match=words):
        instances.wait(script_states(*states), ["i-0"], "running", timeout_s=20, sleep=clock.sleep, clock=clock)
    assert clock.now <= 20 + instances.POLL_S


def test_find_nodes_waits_for_nodes_that_are_listed_late() -> None:
    clock = Clock()
    nodes = [make_instance(InstanceId=f"i-{index}", Tags=as_tag_list({**TAGS, "Node": f"node{index}"})) for index in (0, 1)]
    listings = [nodes[:1], nodes]

    def list_instances(_parameters: dict[str, Any]) -> Any:
        return {"Reservations": [{"Instances": listings.pop(0) if len(listings) > 1 else listings[0]}]}

    scripted = ScriptedAccount({("ec2", "describe_instances"): list_instances})
    entries = instances.find_nodes(scripted, stack="s-1", names=["node0", "node1"], sleep=clock.sleep, clock=clock)
    assert [entry.node for entry in entries] == ["node0", "node1"]
    assert clock.now == instances.POLL_S
    listings[:] = [nodes[:1]]
    entries = instances.find_nodes(scripted, stack="s-1", names=["node0", "node1"], sleep=clock.sleep, clock=clock)
    assert [entry.node for entry in entries] == ["node0"]
    assert clock.now == instances.POLL_S + instances.LISTED_S


def test_survive_power_off_names_instances_that_would_only_stop() -> None:
    def answer(params: dict[str, Any]) -> Any:
        behaviour = {"i-0": "terminate", "i-1": "stop"}[params["InstanceId"]]
        return {"InstanceId": params["InstanceId"], "InstanceInitiatedShutdownBehavior": {"Value": behaviour}}

    account = ScriptedAccount({("ec2", "describe_instance_attribute"): answer})
    assert instances.survive_power_off(account, ["i-0", "i-1"]) == ["i-1"]
