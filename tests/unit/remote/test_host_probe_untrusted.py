"""What a machine says of itself and of our files there becomes a part of commands: only plain words are taken."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

from gpucourse.errors import NodeUntrusted
from gpucourse.labs.hosts.addresses import _is_address
from gpucourse.labs.hosts.lab import _remove
from gpucourse.ports import CommandResult
from gpucourse.remote import host_probe
from tests.unit.remote.test_follow_untrusted import NODE, Scripted

UID, RUN = "course-1", "20261121-otter"
SEEN: dict[str, Any] = {
    "python": "/opt/my env/bin/python3.11", "version": "3.11.2", "torch": True, "gpus": ["Tesla T4"],
    "hostname": "h", "boot": "b", "home": "/home/u", "inode": 1, "device": 2, "disk_free_bytes": 3,
    "addresses": {"eth0": "10.0.0.5"}, "clock": time.time(),
}  # fmt: skip


class Answering(Scripted):
    """Answers every command with the same document, after a line of noise."""

    def __init__(self, document: object) -> None:
        super().__init__(())
        self.document = document

    def run(self, command: str, *, stdin: object = b"", timeout_s: float = 60.0) -> CommandResult:
        assert command
        assert timeout_s
        assert stdin is not None
        return CommandResult(code=0, stdout=json.dumps(self.document).encode(), stderr=b"")


def test_look_reads_a_machine() -> None:
    probe = host_probe.look(Answering(SEEN), ("python3",))
    assert (probe.python, probe.gpus, probe.home) == ("/opt/my env/bin/python3.11", ("Tesla T4",), ("/home/u", "1"))


@pytest.mark.parametrize(
    "change",
    [
        {"python": "/x; touch pwn"},
        {"python": "/x\nProxyCommand id"},
        {"home": "home"},
        {"addresses": {"eth0": "x"}},
        {"addresses": {"e th": "10.0.0.1"}},
        {"clock": -1},
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
def test_command_of_a_removal_is_quoted(kind: str, id_: str) -> None:
    told = host_probe.find_belongings(Answering({"found": [{"kind": kind, "id": id_}], "others": 2}), UID, [RUN])
    assert told == host_probe.Belongings(found=((kind, id_),), others=2)
    command = _remove(NODE, kind, id_).replace("ssh -p 1 u@h", "printf %s", 1)
    said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout
    words = subprocess.run(
        ["/bin/sh", "-c", f'set -- {said}; shift 2; printf %s "$*"'], capture_output=True, text=True, check=True
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
    with pytest.raises(NodeUntrusted, match="is none of them"):
        host_probe.find_belongings(Answering({"found": [{"kind": kind, "id": id_}], "others": 0}), UID, [RUN])


def test_is_address_refuses_what_is_none() -> None:
    assert _is_address("10.0.0.5")
    assert _is_address("fd00::1")
    assert not any(map(_is_address, ["", "host", "10.0.0.5;id", "fe80::1%$(id)", "10.0.0.5/8"]))
