"""The stack of simulated nodes under real Terraform: up, interrupted, down, and nothing left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpucourse.local import driver, health
from gpucourse.model.node import Node
from gpucourse.provision.template import copy_template
from tests.simulated import SimulatedNodes, make_key
from tests.system.provisioning import any_terraform
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

STACK = Path(__file__).parents[2] / "terraform" / "stacks" / "simulated"


@dataclass
class Terraformed:
    """One stack in a folder of its own."""

    root: Path
    count: int = 2
    argv: list[str] = field(default_factory=lambda: list(any_terraform().argv))

    def __post_init__(self) -> None:
        self.folder = self.root / "terraform"
        copy_template(STACK, self.folder)
        self.nodes = SimulatedNodes(
            folder=self.root / "nodes", key=make_key(self.root / "key"), uid=f"test-{os.urandom(6).hex()}"
        )
        self.set_count(self.count)
        assert self.run("init", "-input=false", "-no-color") == 0, self.log()

    def set_count(self, count: int) -> None:
        self.count = count
        spec = self.nodes.spec("node0")
        variables = {
            **{name: spec[name] for name in ("uid", "user", "python", "public_key")},
            "stack": "m03",
            "node_count": count,
            "nodes_folder": str(self.nodes.folder),
            "driver": driver.__file__,
        }
        (self.folder / "gpucourse.auto.tfvars.json").write_text(json.dumps(variables))

    def start(self, *words: str) -> subprocess.Popen[str]:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
        environment = {**variables, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
        log = (self.root / "terraform.log").open("a")
        with log:
            return subprocess.Popen([*self.argv, *words], cwd=self.folder, env=environment, text=True, stdout=log, stderr=log)

    def run(self, *words: str) -> int:
        process = self.start(*words)
        try:
            return process.wait(STUCK_S)
        finally:
            process.kill()
            process.wait()

    def log(self) -> str:
        return (self.root / "terraform.log").read_text()

    def apply(self, *words: str) -> list[Node]:
        code = self.run("apply", "-auto-approve", "-input=false", "-no-color", *words)
        assert code == 0, self.log()
        return self.output()

    def output(self) -> list[Node]:
        result = subprocess.run(
            [*self.argv, "output", "-json"], cwd=self.folder, capture_output=True, text=True, timeout=STUCK_S, check=True
        )
        nodes: list[dict[str, Any]] = json.loads(result.stdout)["nodes"]["value"]
        self.nodes.nodes = [Node(**node) for node in nodes]
        return self.nodes.nodes

    def destroy(self) -> None:
        code = self.run("destroy", "-auto-approve", "-input=false", "-no-color")
        assert code == 0, self.log()

    def list_sick_nodes(self) -> list[str]:
        names = [f"node{index}" for index in range(self.count)]
        return [node.node for node in health.inspect(self.nodes.folder, names) if not node.healthy]

    def assert_nothing_is_left(self) -> None:
        assert self.nodes.leftovers() == []
        assert not self.nodes.folder.exists() or list(self.nodes.folder.iterdir()) == []


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Terraformed]:
    stack = Terraformed(tmp_path)
    yield stack
    health.end_everything(stack.nodes.folder, stack.nodes.uid)


def test_apply_brings_two_nodes_up_and_one_driver_takes_them_down(stack: Terraformed) -> None:
    nodes = stack.apply()
    assert [(node.name, node.role, node.python) for node in nodes] == [
        ("node0", "head", sys.executable),
        ("node1", "worker", sys.executable),
    ]
    assert stack.list_sick_nodes() == []
    assert stack.nodes.ssh("node1", "exit 9").returncode == 9
    assert stack.run("plan", "-detailed-exitcode", "-input=false") == 0
    call_count = stack.log().count("(local-exec): Executing:")
    stack.destroy()
    assert stack.log().count("(local-exec): Executing:") == call_count + 1
    stack.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_destroy_removes_what_an_interrupted_apply_left(stack: Terraformed, number: int) -> None:
    """Terraform does not write its state aside: killed at that moment it leaves an empty file, and forgets what exists."""
    end_in_the_middle(stack, "host.json", number)
    if number == signal.SIGKILL:
        (stack.folder / "terraform.tfstate").write_bytes(b"")
    stack.destroy()
    if number == signal.SIGKILL:
        health.end_everything(stack.nodes.folder, stack.nodes.uid)
    until(lambda: stack.nodes.leftovers() == [], "nothing is left")


def test_stack_passes_its_own_checks(tmp_path: Path) -> None:
    folder = tmp_path / "stacks" / "simulated"
    shutil.copytree(STACK, folder)
    shutil.copytree(STACK.parents[1] / "modules" / "slurm", tmp_path / "modules" / "slurm")
    for words in (["init", "-input=false"], ["fmt", "-check", "-recursive"], ["validate"], ["test"]):
        command = [*any_terraform().argv, *words]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=STUCK_S, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def end_in_the_middle(stack: Terraformed, moment: str, number: int) -> None:
    process = stack.start("apply", "-auto-approve", "-input=false")
    until(lambda: (stack.nodes.folder / moment).exists() or process.poll() is not None, "it has begun")
    process.send_signal(number)
    process.wait(STUCK_S)
    until(lambda: list_drivers(stack) == [], "the drivers that it left have ended")


def list_drivers(stack: Terraformed) -> list[int]:
    """Return the drivers of this stack that run now."""
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if str(stack.nodes.folder).encode() in command(entry)]


def command(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""
