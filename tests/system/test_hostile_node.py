"""A node that lies, by a table: whatever it answers to whichever question, every verb ends in time with an error of the tree,
nothing of the learner's is touched, and the next command works."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpucourse.cli.boundary import run_command
from gpucourse.ports import Completed
from gpucourse.remote import collect, follow, patience
from gpucourse.remote.ssh import SshLink
from tests.liar import Liar, Lie, liar
from tests.lies import LIES, SECRET

pytestmark = pytest.mark.system

VERBS = {
    "machine": ("deploy",),
    "programs": ("deploy",),
    "belongings": ("deploy", "destroy"),
    "cluster": ("run",),
    "probe": ("run",),
    "start": ("run",),
    "follow": ("run", "logs", "cancel", "destroy"),
    "state": ("runs", "cancel"),
    "cancel": ("cancel", "destroy"),
    "pack": ("run", "logs", "destroy"),
    "look": ("silent",),
}
"""Which verbs ask which question; all others are asked by `run`."""

IN_THE_TABLE = [(lie, verb) for lie in LIES for verb in VERBS.get(lie.message, ("run",))]
SAMPLE = IN_THE_TABLE[::29]
"""What `make test` looks at; `make slow` looks at all of them."""

PATIENCE_S = 0.4
"""How long a silent answer is waited for here."""

LONGEST_S = 12.0
CODES = {0, 2, 3, 4, 5, 6, 7, 8}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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

    def types(self, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, float]:
        """Type a command in this very process: its exit code, all that it printed, and how long it took."""
        capfd.readouterr()
        began = time.monotonic()
        code = run_command(words)
        seconds = time.monotonic() - began
        printed = capfd.readouterr()
        return code, printed.out + printed.err, seconds

    def put(self, template: str) -> None:
        """A fresh copy of a workspace, beside the secret."""
        shutil.rmtree(self.root / "now", ignore_errors=True)
        shutil.copytree(self.root / template, self.workspace, symlinks=True)
        self.secret.write_text("the learner's own words\n")
        (self.workspace / "notes.txt").write_text("more of them\n")
        (self.workspace / "runs/canary.txt").parent.mkdir(exist_ok=True)
        (self.workspace / "runs/canary.txt").write_text("and more\n")

    def untouched(self) -> dict[str, str]:
        """The digest of every file that no command may touch, by name; a name for every folder outside the workspace."""
        seen: dict[str, str] = {}
        for path in sorted((self.root / "now").rglob("*")):
            name = path.relative_to(self.root / "now").as_posix()
            ours = name.startswith(("workspace/runs/", "workspace/.gpucourse/", "workspace/receipts", "workspace/exercises"))
            if not ours or name.endswith(("canary.txt", "id_ed25519", "id_ed25519.pub")):
                seen[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
        home = sorted(path.relative_to(self.root).as_posix() for path in (self.root / "home").rglob("*"))
        return seen | dict.fromkeys(home, "in the home")

    def leaked(self) -> list[str]:
        """The files of the program's own that hold the secret, its digest, or what the node wanted to write."""
        marks = (b"the learner's own words", hashlib.sha256(self.secret.read_bytes()).hexdigest().encode())
        files = [path for path in self.workspace.rglob("*") if path.is_file() and path.name != SECRET]
        return [str(path) for path in files if any(mark in path.read_bytes() for mark in marks)]


def deploy_words(node: Liar, module: str) -> tuple[str, ...]:
    return "deploy", module, "--hosts", f"u@127.0.0.1:{node.port}", "--trust", node.fingerprint


@pytest.fixture(scope="module")
def impatient() -> Iterator[None]:
    """Everything waits a fraction of what it waits for a real node."""
    with pytest.MonkeyPatch.context() as patch:
        run, stream = SshLink.run, SshLink.stream

        def soon(link: SshLink, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> Completed:
            return run(link, command, stdin=stdin, timeout_s=min(timeout_s, PATIENCE_S))

        patch.setattr(SshLink, "run", soon)
        patch.setattr(
            SshLink, "stream", lambda link, command, **more: stream(link, command, **{**more, "silence_s": PATIENCE_S})
        )
        patch.setattr(patience, "AFTER_CANCEL_S", 1.5)
        patch.setattr(patience, "AFTER_LIMIT_S", -598.5)  # the run's own limit is ten minutes
        patch.setattr(patience, "MOST_EXTRA_S", 0.5)
        patch.setattr(collect, "COLLECT_S", 1.0)
        patch.setattr("gpucourse.runs.follow.GIVE_UP_S", {"local": 1.0, "hosts": 1.0})
        patch.setattr(follow, "SILENCE_S", PATIENCE_S)
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, impatient: None) -> Iterator[World]:
    root = tmp_path_factory.mktemp("hostile")
    (root / "home").mkdir()
    (root / "script.py").write_text("print('hello')\n")
    (root / "mine.sbatch").write_text("#!/bin/bash\nhostname\n")
    with pytest.MonkeyPatch.context() as patch, liar(root) as node:
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("GPUCOURSE_WORKSPACE", str(root / "now/workspace"))
        patch.setenv("NO_COLOR", "1")
        made = World(root, node)
        for module in ("3", "2"):
            assert run_command(deploy_words(node, module)) == 0
        _keep(made, "deployed")
        node.ended = False
        for number, script in (("3", "script.py"), ("2", "mine.sbatch")):
            shutil.rmtree(root / "now")
            shutil.copytree(root / "deployed", made.workspace, symlinks=True)
            assert run_command([*_run(made, script), "--detach"]) == 0
            _keep(made, f"running {number}")
        node.ended = True
        yield made


def _keep(world: World, name: str) -> None:
    shutil.copytree(world.workspace, world.root / name, symlinks=True)


def _run(world: World, script: str) -> list[str]:
    return ["run", "--script", str(world.root / script), *(["--launcher", "torchrun"] if script.endswith(".py") else [])]


def _typed(world: World, lie: Lie, verb: str) -> list[str]:
    """Lay out the workspace that the verb needs; what is typed."""
    module = "2" if lie.slurm else "3"
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
    return {"logs": ["logs", "-f"], "runs": ["runs"], "cancel": ["cancel"]}[verb]


def _look(world: World, capfd: pytest.CaptureFixture[str], lie: Lie, verb: str) -> None:
    words = _typed(world, lie, verb)
    before, world.node.lie = world.untouched(), lie
    world.node.installed = lie.message != "install"
    world.node.asked.clear()
    world.node.scheduled = lie.slurm
    try:
        code, printed, seconds = world.types(capfd, *words)
    finally:
        world.node.lie, world.node.ended = None, True
    assert lie.message in world.node.asked, f"nobody asked for {lie.message}: {world.node.asked}"
    assert code in CODES, printed
    assert "fault of gpucourse" not in printed
    assert "Traceback" not in printed
    assert CONTROL.search(printed) is None, repr(printed)
    assert seconds < LONGEST_S, f"{seconds:.1f} s"
    assert world.untouched() == before
    assert world.leaked() == []
    assert not Path("/tmp/pwn").exists()
    for then in (["status"], ["runs"]):
        code, printed, seconds = world.types(capfd, *then)
        assert code == 0, printed
        assert CONTROL.search(printed) is None, repr(printed)
        assert seconds < LONGEST_S


def test_an_honest_node_is_served_by_every_verb(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    for slurm in (False, True):
        honest = Lie(name="none", message="nothing", slurm=slurm)
        for verb in ("deploy", "run", "logs", "runs", "cancel", "destroy"):
            words = _typed(world, honest, verb)
            world.node.scheduled = slurm
            code, printed, _ = world.types(capfd, *words)
            assert code == 0, printed


def test_there_are_lies_about_every_question() -> None:
    assert len(LIES) >= 120
    assert {lie.message for lie in LIES} >= set(VERBS)
    assert len({lie.name for lie in LIES}) == len(LIES)


@pytest.mark.parametrize(("lie", "verb"), SAMPLE, ids=[f"{verb}: {lie.name}" for lie, verb in SAMPLE])
def test_a_lie_does_no_harm(world: World, capfd: pytest.CaptureFixture[str], lie: Lie, verb: str) -> None:
    _look(world, capfd, lie, verb)


REST = [row for row in IN_THE_TABLE if row not in SAMPLE]


@pytest.mark.thorough
@pytest.mark.parametrize(("lie", "verb"), REST, ids=[f"{verb}: {lie.name}" for lie, verb in REST])
def test_no_lie_does_harm(world: World, capfd: pytest.CaptureFixture[str], lie: Lie, verb: str) -> None:
    _look(world, capfd, lie, verb)
