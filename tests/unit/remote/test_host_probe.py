"""Our files on a machine: only requested items are believed, and nothing else is removed."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from gpucourse.errors import GpucourseError, NodeUntrusted
from gpucourse.labs.hosts.lab import _remove
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.remote import host_probe
from gpucourse.remote.host_probe import clear, find_belongings, look, mark
from tests.unit.remote.test_follow import NODE, Scripted

HEAD = Node(
    name="node0", role="head", address="127.0.0.1", port=22, private_address="", user="me", gpus=0, instance_type="",
    python=sys.executable, mode="hosts",
)  # fmt: skip


class LocalLink:
    """A machine that is this computer with another home folder, and with the programs in the folders of `programs`."""

    def __init__(self, home: Path, programs: str = "/usr/bin:/bin") -> None:
        self.node, self.alive, self._home, self._programs = HEAD, True, home, programs

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> CommandResult:
        assert isinstance(stdin, bytes)
        assert timeout_s
        environment = {"HOME": str(self._home), "PATH": self._programs}
        result = subprocess.run(["sh", "-c", command], input=stdin, capture_output=True, env=environment, check=False)
        return CommandResult(code=result.returncode, stdout=result.stdout, stderr=result.stderr)

    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> AbstractContextManager[Iterator[bytes]]:
        raise AssertionError(command, stdin, silence_s)

    def close(self) -> None:
        self.alive = False


def make_job(base: Path, run: str) -> Path:
    job = base / ".gpucourse" / "jobs" / run
    job.mkdir(parents=True)
    (job / "job.json").write_text("{}", encoding="utf-8")
    return job


def test_clear_leaves_the_shared_folder_of_a_cluster_as_it_was(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "scratch"
    link, own_folder = LocalLink(home), shared / f"gpucourse-{getpass.getuser()}"
    file = shared / "colleague" / "data"
    file.mkdir(parents=True)
    mark(link, "lab-1")
    job, other_job = make_job(own_folder, "run-1"), make_job(own_folder, "run-2")
    (own_folder / ".gpucourse" / "store").mkdir()
    belongings = find_belongings(link, "lab-1", ["run-1"], str(shared)).found
    assert belongings == (("folder", str(job)), ("mark", str(home / ".gpucourse/labs/lab-1")))
    assert clear(link, "lab-1", ["run-1"], str(shared)).found == ()
    assert (job.exists(), other_job.exists()) == (False, True), "the run of another lab stays"
    assert not (home / ".gpucourse").exists()
    assert clear(link, "lab-2", ["run-2"], str(shared)).found == ()
    assert list(shared.iterdir()) == [file.parent]


def test_clear_removes_our_shared_folder_if_another_lab_is_elsewhere(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "scratch"
    link, own_folder = LocalLink(home), shared / f"gpucourse-{getpass.getuser()}"
    shared.mkdir()
    mark(link, "lab-1", str(shared))
    mark(link, "lab-2")
    mark(link, "lab-3", str(shared))
    for name in ("store", "cache"):
        (own_folder / ".gpucourse" / name).mkdir()
    assert find_belongings(link, "lab-1", [], str(shared)).found == (
        ("mark", str(home / ".gpucourse/labs/lab-1")),
        ("mark", str(own_folder / ".gpucourse/labs/lab-1")),
    )
    assert clear(link, "lab-1", [], str(shared)).found == ()
    assert (own_folder / ".gpucourse" / "store").exists(), "a lab that uses the folder is there"
    assert clear(link, "lab-3", [], str(shared)).found == ()
    assert list(shared.iterdir()) == []
    assert [lab.name for lab in (home / ".gpucourse/labs").iterdir()] == ["lab-2"]


def test_clear_removes_the_environment_with_the_last_lab_that_may_use_it(tmp_path: Path) -> None:
    link, base = LocalLink(tmp_path), tmp_path / ".gpucourse"
    for uid in ("lab-1", "lab-2"):
        mark(link, uid)
    (base / "venv/bin").mkdir(parents=True)
    other_job = make_job(base, "run-of-no-lab")
    assert clear(link, "lab-1", []).found == ()
    assert (base / "venv").is_dir(), "the jobs of lab-2 may use it"
    assert ("folder", str(base / "venv")) in find_belongings(link, "lab-2", []).found
    assert clear(link, "lab-2", []).found == ()
    assert (other_job.is_dir(), (base / "venv").exists()) == (True, False)


@pytest.mark.parametrize(
    ("sinfo", "login_node"),
    [("echo gpu1; echo gpu2", True), ("echo gpu1; uname -n", False), ("echo gpu1; exit 1", False), ("true", False)],
)
def test_look_knows_a_login_node_by_the_nodes_of_its_cluster(tmp_path: Path, sinfo: str, login_node: bool) -> None:
    (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{sinfo}\n", encoding="utf-8")
    (tmp_path / "sinfo").chmod(0o755)
    facts = look(LocalLink(tmp_path, f"{tmp_path}:/usr/bin:/bin"), (sys.executable,))
    assert facts.login_node is login_node


@pytest.mark.parametrize("name", ["missing", "file"])
def test_mark_names_a_shared_folder_that_is_none_and_makes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GpucourseError, match=f"there is no folder {tmp_path / name}, which gpucourse.yaml names"):
        mark(LocalLink(tmp_path / "home"), "lab-1", str(tmp_path / name))
    assert not (tmp_path / "missing").exists()
    assert not (tmp_path / "home" / ".gpucourse").exists()


UID, RUN = "course-1", "20261121-otter"


SEEN: dict[str, Any] = {
    "python": "/opt/my env/bin/python3.11", "version": "3.11.2", "torch": True, "gpus": ["Tesla T4"],
    "hostname": "h", "boot": "b", "folder": "/home/u", "inode": 1, "device": 2, "disk_free_bytes": 3,
    "addresses": {"eth0": "10.0.0.5"}, "clock": time.time(),
}  # fmt: skip


class Answering(Scripted):
    """Answer every command with the same document, after a line of noise."""

    def __init__(self, document: object) -> None:
        super().__init__(())
        self.document = document

    def run(self, command: str, *, stdin: object = b"", timeout_s: float = 60.0) -> CommandResult:
        assert command
        assert timeout_s
        assert stdin is not None
        return CommandResult(code=0, stdout=json.dumps(self.document).encode(), stderr=b"")


@pytest.mark.parametrize(
    "change",
    [
        {"python": "/x; touch pwn"},
        {"folder": "home"},
        {"addresses": {"eth0": "x"}},
        {"addresses": {"e th": "10.0.0.1"}},
    ],
    ids=repr,
)
def test_look_refuses_words_that_no_machine_has(change: dict[str, object]) -> None:
    with pytest.raises(NodeUntrusted, match="node0: its report on itself cannot be used"):
        host_probe.look(Answering({**SEEN, **change}), ("python3",))


@pytest.mark.parametrize(
    ("kind", "id_"),
    [
        ("process", "17"),
        ("folder", f"/home/o'brien/.gpucourse/jobs/{RUN}"),
        ("folder", f"/home/$(touch pwn)/.gpucourse/jobs/{RUN}"),
        ("mark", f"/home/u/.gpucourse/labs/{UID}"),
    ],
)
def test_find_belongings_quotes_the_command_of_a_removal(kind: str, id_: str) -> None:
    belongings = host_probe.find_belongings(Answering({"found": [[kind, id_]], "others": 2}), UID, [RUN])
    assert belongings == host_probe.Belongings(found=((kind, id_),), others=2)  # type: ignore[arg-type]  # kinds are a table here
    command = _remove(NODE, kind, id_).replace("ssh -p 1 u@h", "printf %s", 1)
    output = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout
    words = subprocess.run(
        ["/bin/sh", "-c", f'set -- {output}; shift 2; printf %s "$*"'], capture_output=True, text=True, check=True
    )
    assert words.stdout == id_


@pytest.mark.parametrize(
    ("kind", "id_"),
    [
        ("process", "1; touch pwn"),
        ("folder", "/home/u"),
        ("folder", "/home/u/.gpucourse/jobs/other"),
        ("mark", "/home/u/.gpucourse/labs/other"),
    ],
)
def test_find_belongings_refuses_what_is_not_ours(kind: str, id_: str) -> None:
    with pytest.raises(NodeUntrusted, match="is not one of them"):
        host_probe.find_belongings(Answering({"found": [[kind, id_]], "others": 0}), UID, [RUN])
