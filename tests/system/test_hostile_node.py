"""A node that lies, by a table of lies: every command ends in time with one of the program's errors, none of the learner's
files is touched, and the next command works.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpucourse.cli.boundary import run_command
from gpucourse.remote import collect, patience
from tests.liar import Liar, Lie, as_json, liar
from tests.lies import SECRET, list_rows
from tests.parts import need

pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]

FAST = {
    "deploy: machine: a Python of a shell",
    "deploy: belongings: a folder of a shell",
    "deploy: machine: an address that is none",
    "run: cluster: a partition of a shell",
    "cancel: states: a run elsewhere",
    "cancel: cancel is an empty object",
    "logs: follow: an end with jobs of escapes",
    "destroy: pack: a name beside files/",
    "run: take: a failure with escapes",
}
"""The rows of `make test`; `make slow` tries the others."""

WAIT_S = 25.0
"""The longest wait of a command for an answer that is not a stream, in seconds."""

CODES = {0, 2, 3, 4, 5, 6, 7, 8}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@contextmanager
def impatience(lie: Lie) -> Iterator[None]:
    """Wait for this lie only a fraction of what a real node gets."""
    longest_s = 1.5 if lie.message in {"follow", "pack", "look"} else WAIT_S
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patience, "AFTER_CANCEL_S", longest_s)
        patch.setattr(patience, "AFTER_LIMIT_S", longest_s - 600.0)  # the run's own limit is ten minutes
        patch.setattr(patience, "MAX_EXTRA_S", 0.5)
        patch.setattr(collect, "COLLECT_S", longest_s)
        if lie.message != "pack":  # until the outputs are asked for, the node is honest
            patch.setattr("gpucourse.runs.follow.GIVE_UP_S", 2 * longest_s)
            patch.setattr("gpucourse.runs.follow.GIVE_UP_SIMULATED_S", 2 * longest_s)
        yield


@dataclass
class World:
    """A learner's home with a secret in it, workspaces to copy, and the node that lies."""

    root: Path
    node: Liar

    @property
    def workspace(self) -> Path:
        return self.root / "now/workspace"

    @property
    def secret(self) -> Path:
        return self.root / "now" / SECRET

    def types(self, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
        """Type a command in this process. Return its exit code and everything that it printed."""
        capfd.readouterr()
        self.node.asked.clear()
        with impatience(self.node.lie) if self.node.lie else nullcontext():
            code = run_command(words)
        capture = capfd.readouterr()
        return code, capture.out + capture.err

    def record(self) -> dict[str, Any]:
        """Return the stored record of the only run."""
        [path] = self.workspace.glob("runs/**/run.json")
        stored: dict[str, Any] = json.loads(path.read_text())
        return stored

    def stacks(self) -> set[str]:
        """Return the labs on record."""
        return {path.stem for path in (self.workspace / ".gpucourse/deployments").glob("*.json")}

    def keep_lab_of_former_version(self) -> None:
        """Record a lab of module 2 on a login node, which --target hosts offered before there was --target slurm."""
        stacks = self.workspace / ".gpucourse/deployments"
        record = json.loads((stacks / "03-hosts.json").read_text())
        (stacks / "02-hosts.json").write_text(json.dumps(record | {"module": "2", "stack": "02-hosts"}))

    def put(self, template: str) -> None:
        """Put a fresh copy of a workspace next to the secret."""
        shutil.rmtree(self.root / "now", ignore_errors=True)
        shutil.copytree(self.root / template, self.workspace, symlinks=True)
        for secret in (self.secret, self.workspace / SECRET):  # the table's path out of the folder leads to the second file
            secret.write_text("the learner's own words\n")
        (self.workspace / "notes.txt").write_text("more of them\n")
        (self.workspace / "runs/canary.txt").parent.mkdir(exist_ok=True)
        (self.workspace / "runs/canary.txt").write_text("and more\n")

    def keep(self, template: str) -> None:
        """Store the workspace in its current state, for `put`."""
        shutil.copytree(self.workspace, self.root / template, symlinks=True)

    def digest_untouched_files(self) -> dict[str, str]:
        """Return the digest of every file that no command may touch, by name, and a name for every folder outside the
        workspace.
        """
        digests: dict[str, str] = {}
        for path in sorted((self.root / "now").rglob("*")):
            name = path.relative_to(self.root / "now").as_posix()
            is_ours = name.startswith(("workspace/runs/", "workspace/.gpucourse/", "workspace/receipts", "workspace/exercises"))
            if not is_ours or name.endswith(("canary.txt", "id_ed25519", "id_ed25519.pub")):
                digests[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
        home_paths = sorted(path.relative_to(self.root).as_posix() for path in (self.root / "home").rglob("*"))
        return digests | dict.fromkeys(home_paths, "in the home")

    def find_leaks(self) -> list[str]:
        """Return those files of the program that contain the secret, its digest, or what the node tried to write."""
        marks = (b"the learner's own words", hashlib.sha256(self.secret.read_bytes()).hexdigest().encode())
        files = [path for path in self.workspace.rglob("*") if path.is_file() and path.name != SECRET]
        return [str(path) for path in files if any(mark in path.read_bytes() for mark in marks)]


def deploy_words(node: Liar, module: str) -> tuple[str, ...]:
    return "deploy", module, "--hosts", f"u@127.0.0.1:{node.port}", "--trust", node.fingerprint


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    need("ssh")
    root = tmp_path_factory.mktemp("hostile")
    (root / "home").mkdir()
    (root / "script.py").write_text("print('hello')\n")
    (root / "mine.sbatch").write_text("#!/bin/bash\nhostname\n")
    with pytest.MonkeyPatch.context() as patch, liar(root) as node:
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("GPUCOURSE_WORKSPACE", str(root / "now/workspace"))
        patch.setenv("NO_COLOR", "1")
        new_world = World(root, node)
        assert run_command(deploy_words(node, "3")) == 0
        new_world.keep_lab_of_former_version()
        new_world.keep("deployed")
        node.ended = False
        for number, script in (("3", "script.py"), ("2", "mine.sbatch")):
            shutil.rmtree(root / "now")
            shutil.copytree(root / "deployed", new_world.workspace, symlinks=True)
            assert run_command([*_run(new_world, script), "--detach"]) == 0
            new_world.keep(f"running {number}")
        node.ended = True
        yield new_world


def _run(world: World, script: str) -> list[str]:
    return ["run", "--script", str(world.root / script), *(["--launcher", "torchrun"] if script.endswith(".py") else [])]


def _prepare_command(world: World, lie: Lie, verb: str) -> list[str]:
    """Prepare the workspace for the verb, and return the words of the command."""
    module = "2" if lie.slurm else "3"
    world.node.scheduled = lie.slurm
    world.put("deployed" if verb in {"deploy", "run", "silent"} else f"running {module}")
    if verb == "deploy":
        return list(deploy_words(world.node, module))
    if verb == "run":
        return _run(world, "mine.sbatch" if lie.slurm else "script.py")
    if verb == "silent":
        world.node.ended = False
        return [*_run(world, "script.py"), "--silence", "0.2s"]
    if verb == "cancel":
        world.node.ended = False
    if verb == "destroy":
        return ["destroy", module, "--yes"]
    return {"logs": ["logs", "-f"], "runs": ["runs"], "cancel": ["cancel", "latest"]}[verb]


def check_lie(world: World, capfd: pytest.CaptureFixture[str], lie: Lie, verb: str) -> None:
    words = _prepare_command(world, lie, verb)
    digests, world.node.lie = world.digest_untouched_files(), lie
    world.node.installed = lie.message != "install"
    try:
        code, capture = world.types(capfd, *words)
    finally:
        world.node.lie, world.node.ended = None, True
    assert lie.message in world.node.asked, f"no command requested {lie.message}: {world.node.asked}; {capture}"
    assert code in CODES, capture
    assert "fault of gpucourse" not in capture
    assert "Traceback" not in capture
    assert CONTROL.search(capture) is None, repr(capture)
    assert world.digest_untouched_files() == digests
    assert world.find_leaks() == []
    assert not Path("/tmp/pwn").exists()
    if lie.message == "pack":
        _check_outputs(world, code, verb)
    for command in (["status"], ["runs"]):
        code, capture = world.types(capfd, *command)
        assert code == 0, capture
        assert CONTROL.search(capture) is None, repr(capture)


def _check_outputs(world: World, code: int, verb: str) -> None:
    """Check that uncollected outputs are an error, that the run waits for another attempt, and that its lab still exists."""
    record = world.record()
    lost_outputs = [refusal for refusal in record["refused"] if refusal["reason"].startswith("not collected")]
    assert (code == 7) == bool(lost_outputs)
    assert record["collected"] != bool(lost_outputs)
    if lost_outputs:
        assert record["state"] == "collecting"
        assert verb != "destroy" or {"02-hosts", "03-hosts"} <= world.stacks()


DAMAGED = Lie(name="pack: no tar at all", message="pack", out=b"no tar at all" * 1000)


def test_run_fails_until_its_outputs_are_collected(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    words = _prepare_command(world, DAMAGED, "run")
    world.node.lie = DAMAGED
    try:
        code, capture = world.types(capfd, *words)
        assert code == 7, capture
        waiting = world.record()
        assert f"run {waiting['id']} has ended, but not all of its outputs are collected yet: node0:" in capture
        assert "cannot be used" in capture
        assert "gpucourse destroy 3 --discard" in capture
        assert waiting["refused"][0]["node"] == "node0"
        assert (waiting["state"], waiting["collected"], waiting["verdict"]) == ("collecting", False, None)
        for command, expected in ((["runs"], 0), (["logs", "-f"], 7)):
            code, capture = world.types(capfd, *command)
            assert code == expected, capture
            assert "not all of its outputs are collected yet" in capture
    finally:
        world.node.lie = None
    assert world.types(capfd, "runs")[0] == 0
    whole = world.record()
    assert (whole["state"], whole["collected"], whole["refused"]) == ("succeeded", True, [])
    assert list(world.workspace.glob("runs/**/outputs/node0/result.txt"))


def test_destroy_keeps_a_lab_until_its_outputs_are_collected_or_discarded(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    words = _prepare_command(world, DAMAGED, "destroy")
    world.node.lie = DAMAGED
    try:
        code, capture = world.types(capfd, "destroy", "--all", "--yes")
        assert code == 7, capture
        assert "are not collected yet, and node0: the outputs that it sent cannot be used" in capture
        assert "gpucourse destroy 3 --discard" in capture
        assert world.stacks() == {"03-hosts"}, "the other lab is taken down all the same"
        world.keep("refused")
        code, capture = world.types(capfd, "destroy", "3", "--discard", "--yes")
        assert code == 0, capture
        assert world.stacks() == set()
    finally:
        world.node.lie = None
    world.put("refused")
    code, capture = world.types(capfd, *words)
    assert code == 0, capture
    assert list(world.workspace.glob("runs/**/outputs/node0/result.txt")), "the node is honest again"


@pytest.mark.parametrize(("has_started", "expected"), [(True, 7), (False, 0)])
def test_destroy_keeps_a_lab_that_lost_a_run_only_if_the_run_had_started(
    world: World, capfd: pytest.CaptureFixture[str], has_started: bool, expected: int
) -> None:
    error = as_json({"error": "there is no run", "kind": "absent"})
    unknown = Lie(name="pack: no such run", message="pack", err=error, code=3)
    words = _prepare_command(world, unknown, "destroy")
    if not has_started:  # its command was killed before the last node had started
        [path] = world.workspace.glob("runs/**/run.json")
        path.write_text(json.dumps({**world.record(), "state": "starting", "started": None}))
    world.node.lie = unknown
    try:
        code, capture = world.types(capfd, *words)
    finally:
        world.node.lie = None
    assert code == expected, capture
    assert ("03-hosts" in world.stacks()) == has_started


def _list_params() -> Iterator[object]:
    for lie, verb in list_rows():
        name = f"{verb}: {lie.name}"
        yield pytest.param(lie, verb, id=name, marks=[] if name in FAST else [pytest.mark.slow])


@pytest.mark.parametrize(("lie", "verb"), list(_list_params()))
def test_lie_does_no_harm(world: World, capfd: pytest.CaptureFixture[str], lie: Lie, verb: str) -> None:
    check_lie(world, capfd, lie, verb)
