"""Watching the first boot: its steps with their times, the marker at its end, and the log of a node that failed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError, OtherHostKey, UnreachableError
from gpucourse.labs.aws import first_boot
from gpucourse.model.event import NodeEvent, ResourceEvent
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from tests.unit.labs.aws.fakes import context_in, fleet_of, make_completed, node

READY = json.dumps({"gpus": ["Tesla T4"], "driver": "595.71", "torch": "2.13.0"})


def test_wait_reports_each_step_until_the_marker_is_there(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    script = iter(["\nstep\nkillers\n", "\nstep\ndriver\n", "\nstep\ndriver\n", f"\nready\n{READY}\n"])
    fleet = fleet_of(lambda _node, _command: make_completed(next(script)), node("node0"))
    marks = first_boot.wait(context, fleet, pause_s=0.0)
    assert marks["node0"].gpus == ["Tesla T4"]
    assert not marks["node0"].simulated
    steps = [(event.address, event.state) for event in events if isinstance(event, ResourceEvent)]
    assert steps == [
        ("node0: killers", "started"),
        ("node0: killers", "done"),
        ("node0: driver", "started"),
        ("node0: driver", "done"),
    ]
    [node_event] = [event for event in events if isinstance(event, NodeEvent)]
    assert (node_event.ok, node_event.detail) == (True, "1 x Tesla T4, driver 595.71")


def test_wait_connects_again_when_a_busy_boot_loses_the_connection(tmp_path: Path) -> None:
    context, _events = context_in(tmp_path)
    script = iter([*["lost"] * 5, "\nstep\ndriver\n", *["lost"] * 5, f"\nready\n{READY}\n"])

    def answer(node: Node, _command: str) -> CommandResult:
        if (output := next(script, "lost")) == "lost":
            raise UnreachableError(f"{node.name} stopped answering", hint="")
        return make_completed(output)

    fleet = fleet_of(answer, node("node0"))
    assert first_boot.wait(context, fleet, pause_s=0.0)["node0"].gpus == ["Tesla T4"]
    with pytest.raises(UnreachableError, match="stopped answering"):
        first_boot.wait(context, fleet, pause_s=0.0)
    questions: list[str] = []

    def answer_as_another(_node: Node, command: str) -> CommandResult:
        questions.append(command)
        raise OtherHostKey("another host key", hint="")

    with pytest.raises(OtherHostKey):
        first_boot.wait(context, fleet_of(answer_as_another, node("node0")), pause_s=0.0)
    assert len(questions) == 1, "it is told at once"


SILENT = "\nsilent\nstatus: error\ndetail: ('scripts_user', RuntimeError('Runparts: 1 failures'))\n"
FAILED = "\nfailed\nstep 'driver' failed at line 108 with status 1: count_gpus\n\nthe driver sees 0 GPUs of 1\n"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (FAILED, r"node1(.|\n)*the driver sees 0 GPUs of 1"),
        (SILENT, r"left no message(.|\n)*Runparts"),
        ("\nstep\ndriver\n", "not set up in time"),
    ],
    ids=["failed", "without a message", "never ends"],
)
def test_wait_fails_with_what_the_node_says(tmp_path: Path, message: str, words: str) -> None:
    context, events = context_in(tmp_path)

    def answer(node: Node, _command: str) -> CommandResult:
        return make_completed(message if node.name == "node1" else f"\nready\n{READY}\n")

    with pytest.raises(InfrastructureError, match=words):
        first_boot.wait(context, fleet_of(answer, node("node0"), node("node1")), patience_s=0.0)
    assert [event.node for event in events if isinstance(event, NodeEvent) and event.ok] == ["node0"]


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({"ready": READY, "step": "done\n"}, f"simulated\nready\n{READY}"),
        ({"failed": "step 'python' failed\n", "step": "python\n"}, "simulated\nfailed\nstep 'python' failed\n"),
        ({"step": "driver\n"}, "simulated\nstep\ndriver\n"),
        ({"ready": "", "step": "python\n"}, "simulated\nstep\npython\n"),  # the marker is being written
    ],
)
def test_look_reads_the_marks_of_a_node(files: dict[str, str], target: str, tmp_path: Path) -> None:
    state = tmp_path / "var/lib/gpucourse"
    state.mkdir(parents=True)
    for name, text in files.items():
        (state / name).write_text(text)
    environment = {"PATH": os.environ["PATH"], "GPUCOURSE_NODE_ROOT": str(tmp_path)}
    result = subprocess.run(["sh", "-c", first_boot._LOOK], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == target
