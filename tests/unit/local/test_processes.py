from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from gpucourse.local import processes

MEEK = "print('up', flush=True); import time; time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + MEEK


class Nursery:
    """Processes that a test starts and ends."""

    def __init__(self) -> None:
        self.uid = uuid4().hex
        self.mark = processes.marker(processes.STACK, self.uid)
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, program: str = MEEK, **variables: str) -> int:
        environment = {**os.environ, processes.STACK: self.uid, **variables}
        child = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, start_new_session=True
        )
        self.children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        return child.pid

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.communicate()


BARE = "import os, subprocess; subprocess.Popen(['/bin/sleep', '600'], env={}); " + MEEK


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.mark.parametrize(
    ("environment", "matches"),
    [
        (b"A=1\0GPUCOURSE_STACK_UID=u1\0B=2\0", True),
        (b"GPUCOURSE_STACK_UID=u11\0", False),
        (b"GPUCOURSE_STACK_UID=u1/node0\0", False),
        (b"X_GPUCOURSE_STACK_UID=u1\0", False),
        (b"SPEC=GPUCOURSE_STACK_UID=u1\0", False),
    ],
)
def test_holds_matches_a_mark_exactly(environment: bytes, matches: bool) -> None:
    assert processes.holds(environment, "GPUCOURSE_STACK_UID=u1") is matches


def test_list_carriers_finds_them_in_any_session(nursery: Nursery) -> None:
    pids = sorted([nursery.start(), nursery.start(GPUCOURSE_RUN_DIR="/run/1")])
    assert processes.list_carriers(nursery.mark) == pids
    assert processes.list_carriers(nursery.mark, spare=processes.DETACHED_RUN) == [nursery.children[0].pid]
    assert processes.list_carriers(nursery.mark[:-1]) == []
    assert processes.has_marker(pids[0], nursery.mark)
    assert not processes.has_marker(os.getpid(), nursery.mark)
    assert processes.command_of(pids[0]).startswith(sys.executable)


def test_end_kills_only_those_that_ignore_sigterm(nursery: Nursery) -> None:
    nursery.start()
    nursery.start(STUBBORN)
    assert processes.end(nursery.mark, grace_s=1.5) == []
    assert [child.wait() for child in nursery.children] == [-signal.SIGTERM, -signal.SIGKILL]


def test_end_ends_a_stopped_process(nursery: Nursery) -> None:
    pid = nursery.start()
    os.kill(pid, signal.SIGSTOP)
    assert processes.end(nursery.mark, grace_s=60) == []
    assert nursery.children[0].wait() == -signal.SIGTERM


def test_end_returns_those_that_do_not_end(nursery: Nursery) -> None:
    pid = nursery.start()
    deaf = processes.end(nursery.mark, grace_s=0.05, kill_s=0.05, signal_process=lambda _pid, _number: None)
    assert deaf == [pid]


def test_list_session_processes_finds_members_that_hide_their_environment(nursery: Nursery) -> None:
    leader = nursery.start(
        "import os, subprocess; os.environ.clear(); subprocess.Popen(['/bin/sleep', '600'], env={}); " + MEEK
    )
    mark = processes.marker(processes.STACK, uuid4().hex)
    assert processes.list_session_processes(mark, None, processes.DETACHED_RUN) == []
    members = processes.list_session_processes(mark, leader, processes.DETACHED_RUN)
    os.killpg(leader, signal.SIGKILL)
    assert len(members) == 2
    assert leader in members


def test_list_carriers_asks_ps_when_there_is_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """List processes as on macOS, where `ps -E` prints the environment after the command."""
    answer = "  71 /bin/sleep 600 A=1 GPUCOURSE_STACK_UID=u1 B=x y\n 72 sh -c GPUCOURSE_STACK_UID=u12 \n   73 (defunct)\n"
    (tmp_path / "ps").write_text(
        f"#!/bin/sh\ncase $* in -axEww*) printf '%s' '{answer}';; *pid=,ppid=*) echo ' 71 1';; *) echo 1;; esac\n"
    )
    (tmp_path / "ps").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(processes, "_PROC", tmp_path / "no-proc")
    assert processes.list_carriers("GPUCOURSE_STACK_UID=u1") == [71]
    assert processes.has_marker(71, "GPUCOURSE_STACK_UID=u1")
    assert not processes.has_marker(72, "GPUCOURSE_STACK_UID=u1")
    assert processes.command_of(71) == "1"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="without /proc nobody knows the children of a process that ended")
def test_end_ends_children_that_dropped_their_environment(nursery: Nursery) -> None:
    parent = nursery.start(BARE)
    second_parent = nursery.start(BARE, **{processes.STACK: uuid4().hex})
    [child], [stranger] = (_children(pid) for pid in (parent, second_parent))
    assert child not in processes.list_carriers(nursery.mark)
    assert processes.end(nursery.mark, grace_s=0.1) == []
    assert not processes.command_of(child)
    assert Path(f"/proc/{stranger}/cmdline").read_bytes().startswith(b"/bin/sleep")
    os.kill(stranger, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
