"""The readiness checks, one by one, with nodes and an account that answer from a script."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws import console
from gpucourse.aws.caller import VARIABLE
from gpucourse.errors import InfrastructureError, OtherHostKey, UnreachableError
from gpucourse.labs.aws import readiness
from gpucourse.labs.aws.lab import CloudLab
from gpucourse.labs.aws.readiness import ReadinessTimes
from gpucourse.model.event import Event, NodeEvent, Note
from gpucourse.model.node import Inventory, Node
from gpucourse.ports import CommandResult, Link
from tests.unit.aws.cloud import ScriptedAccount, make_host_key
from tests.unit.labs.aws.fakes import ScriptedLink, ScriptedNodes, context_in, deployment_of, make_completed, node

READY = json.dumps({"gpus": ["Tesla T4"], "driver": "595.71"})
KEYS = {f"i-node{number}": make_host_key("ssh-ed25519", bytes([number]) * 32) for number in range(2)}
AT_ONCE = ReadinessTimes(listed_s=0.0, console_s=0.0, ssh_pause_s=0.0, boot_pause_s=0.0, slurm_s=0.0, slurm_pause_s=0.01)
NODES = (node("node0", role="head", address="10.0.0.1"), node("node1", address="10.0.0.2"))


def instance(name: str, number: int, state: str = "running") -> dict[str, Any]:
    """Return the account's description of a node's instance, with a public address that Terraform has not seen yet."""
    return {
        "InstanceId": f"i-{name}",
        "InstanceType": "g4dn.2xlarge",
        "Placement": {"AvailabilityZone": "us-east-2a"},
        "State": {"Name": state},
        "LaunchTime": datetime.now(UTC),
        "PublicIpAddress": f"203.0.113.{number}",
        "PrivateIpAddress": f"10.0.0.{number}",
        "Tags": [{"Key": "Node", "Value": name}],
    }


class World:
    """One lab: the answers of its nodes, its account and its console."""

    def __init__(self, folder: Path) -> None:
        context, self.events = context_in(folder)
        self.context = replace(context, make_transport=lambda _key: self)
        self.deployment = deployment_of()
        self.deployment.inventory = Inventory(stack=self.deployment.stack, nodes=NODES)
        self.found = [instance("node0", 1), instance("node1", 2)]
        self.keys: dict[str, str | None] = dict(KEYS)
        self.smi, self.sinfo = "Tesla T4, 595.71\n", ""
        self.boot = f"\nready\n{READY}\n"
        self.refused: list[UnreachableError] = []
        self.account = ScriptedAccount(
            {
                ("ec2", "describe_instances"): lambda _asked: {"Reservations": [{"Instances": self.found}]},
                ("ec2", "get_console_output"): lambda asked: {"Output": self.show_console(asked["InstanceId"])},
            }
        )

    @property
    def connected_nodes(self) -> list[str]:
        """Return the nodes that took part in a sum."""
        return [event.node for event in self.list_events(NodeEvent) if event.step.startswith("all-reduce") and event.ok]

    def wait_until_ready(self, times: ReadinessTimes = AT_ONCE, **options: Any) -> Inventory:
        terraform: Any = None
        lab = CloudLab(self.context, self.deployment, terraform, self.account)
        return readiness.wait_until_ready(self.context, lab, times, **options)

    def show_console(self, which: str) -> str:
        return f"{console.BEGIN}\n{key}\n{console.END}\n" if (key := self.keys[which]) else "it boots\n"

    def answer(self, node: Node, command: str) -> CommandResult:
        if "nvidia-smi" in command:
            return make_completed(self.smi)
        if "sinfo" in command:
            return make_completed(self.sinfo)
        if command.startswith(("ls ", "if [ -r ")):  # notes of nodes, and logs
            return make_completed()
        if command.startswith("ip "):
            return make_completed(f"{node.private_address} dev eth0\n")
        if "import socket" in command or "init_process_group" in command:
            return make_completed()
        return make_completed(self.boot)

    def connect(self, node: Node, *, timeout_s: float = 10.0, shared: str = "") -> Link:
        """Return this world, which is also the transport to its nodes."""
        if self.refused:
            raise self.refused.pop()
        return ScriptedLink(node, self.answer)

    def list_events(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_wait_until_ready_makes_all_checks_on_real_machines(world: World) -> None:
    readiness_result = world.wait_until_ready()
    assert [(node.address, node.host_key, node.gpus) for node in readiness_result.nodes] == [
        ("203.0.113.1", KEYS["i-node0"], 1),
        ("203.0.113.2", KEYS["i-node1"], 1),
    ]
    steps = dict.fromkeys(event.step for event in world.list_events(NodeEvent))
    assert list(steps) == ["running", "console", "ssh", "set up", "nvidia-smi", "torch", "all-reduce (nccl)"]
    assert all(event.ok and event.seconds >= 0 for event in world.list_events(NodeEvent))
    assert sorted(world.connected_nodes) == ["node0", "node1"]
    text = world.context.paths.stack("03-aws-t4").known_hosts.read_text()
    assert text == f"[203.0.113.1]:22 {KEYS['i-node0']}\n[203.0.113.2]:22 {KEYS['i-node1']}\n"


def test_wait_until_ready_calls_on_answer_early_and_refuses_a_driver_that_sees_nothing(world: World) -> None:
    """Call `on_answer` before the driver is checked. After a stop beyond its first deadline, a node would otherwise end itself
    five minutes after it boots.
    """
    steps: list[str] = []

    def note_steps() -> None:
        steps.extend(dict.fromkeys(event.step for event in world.list_events(NodeEvent)))

    world.smi = ""
    with pytest.raises(InfrastructureError, match="the driver does not see the GPUs"):
        world.wait_until_ready(on_answer=note_steps)
    assert steps == ["running", "console", "ssh"]
    assert world.connected_nodes == []


def test_wait_until_ready_believes_a_computer_that_says_it_is_simulated(world: World) -> None:
    world.boot = f"simulated\nready\n{json.dumps({'gpus': []})}\n"
    world.smi = ""
    assert [node.gpus for node in world.wait_until_ready().nodes] == [0, 0]
    assert [note.level for note in world.list_events(Note) if "simulated" in note.text] == ["warning"]


def test_wait_until_ready_names_a_machine_that_is_gone_stopped_or_unknown(world: World) -> None:
    world.found = [instance("node0", 1), instance("node1", 2, "terminated")]
    with pytest.raises(InfrastructureError, match="no instance for node1"):
        world.wait_until_ready()
    world.found = [instance("node0", 1), instance("node1", 2, "stopped")]
    with pytest.raises(InfrastructureError, match="node1 of 03-aws-t4 is stopped") as caught:
        world.wait_until_ready()
    assert caught.value.hint == "gpucourse start 3"
    world.found = [instance("node0", 1), instance("node1", 2)]
    world.keys["i-node1"] = None
    with pytest.raises(InfrastructureError, match=r"node1 \(i-node1\) did not show its SSH host key"):
        world.wait_until_ready()


def test_wait_until_ready_retries_refused_ssh_but_not_a_changed_host_key(world: World) -> None:
    world.refused = [UnreachableError("connection refused"), UnreachableError("connection refused")]
    assert len(world.wait_until_ready().nodes) == 2
    world.refused = [OtherHostKey("somebody else is there"), OtherHostKey("somebody else is there")]
    with pytest.raises(UnreachableError, match="somebody else is there"):
        world.wait_until_ready()


def test_wait_until_ready_says_that_this_computer_moved(world: World) -> None:
    world.context = replace(world.context, environ={VARIABLE: "data:,198.51.100.9"})
    world.refused = [UnreachableError("timed out"), UnreachableError("timed out")]
    with pytest.raises(
        UnreachableError, match=r"open to 203\.0\.113\.7/32, and the address of this computer is now 198\.51\.100\.9/32"
    ) as caught:
        world.wait_until_ready(replace(AT_ONCE, ssh_s=-1.0))
    assert caught.value.hint == "gpucourse allow-ip 3"


def test_wait_until_ready_looks_for_slurm_only_on_real_machines(world: World) -> None:
    world.deployment.module, world.sinfo = "2", "node0|idle|gpu:1|none\nnode1|idle|gpu:2|none\n"
    with pytest.raises(InfrastructureError, match="node1: idle, GPUs gpu:2") as caught:
        world.wait_until_ready()
    assert "gpucourse ssh 2 -- sinfo -R" in (caught.value.hint or "")
    world.boot = f"simulated\nready\n{json.dumps({'gpus': []})}\n"
    world.wait_until_ready()
    assert [note.text for note in world.list_events(Note) if "so Slurm is not checked" in note.text] == [
        "node0, node1: the machine reports that it is simulated and has no GPU, so Slurm is not checked"
    ]
    assert world.deployment.shared == "/shared"


def test_forget_others_removes_nodes_of_a_larger_lab_or_says_that_it_may_not(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    context = replace(context, make_transport=lambda _key: ScriptedNodes(answer))
    names, removal, commands = "node0\nnode1\n", make_completed(), list[str]()

    def answer(_node: Node, command: str) -> CommandResult:
        commands.append(command)
        return removal if "rm -f" in command else make_completed(names)

    lab = Inventory(stack="02-aws-t4", nodes=NODES)
    assert readiness.forget_others(context, lab, stack="uid-1") == set()
    names = "node0\nnode1\nnode2\nnode2.new\n"
    assert readiness.forget_others(context, lab, stack="uid-1") == {"node2"}
    assert "/uid-1/nodes && if [ -w . ]; then rm -f node2; else" in commands[-1].replace('"', "")
    removal = make_completed(code=1, complaint="a password is required")
    assert readiness.forget_others(context, lab, stack="uid-1") == set()
    [note] = [event.text for event in events if isinstance(event, Note)]
    assert note.endswith("of an earlier, larger lab as down: node2 (a password is required)")
