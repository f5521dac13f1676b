"""Ending the processes of a run. A clock that only naps move."""

from __future__ import annotations

import builtins
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from gpucourse.remote.agent import reap
from gpucourse.remote.agent.job import MARK, Job
from gpucourse.remote.agent.reap import below, find_marked
from tests.waiting import until

PID = 4711
open_file: Callable[..., IO[Any]] = open


class Machine:
    """A machine with one process, which ends at `ends_s` or when it is killed; it does not listen to anything else."""

    def __init__(self, ends_s: float) -> None:
        self.now, self.ends_s = 0.0, ends_s
        self.signals: list[int] = []

    def nap(self, seconds: float) -> None:
        self.now += seconds

    def open(self, path: str, *words: Any, **options: Any) -> IO[Any]:
        if path != f"/proc/{PID}/stat":
            return open_file(path, *words, **options)
        return io.BytesIO(f"{PID} (rank) {'S' if self.now < self.ends_s else 'Z'} 1".encode())

    def find(self) -> list[int]:
        return [PID] if self.now < self.ends_s else []

    def signal(self, _pid: int, number: int) -> None:
        self.signals.append(number)
        if number == signal.SIGKILL:
            self.ends_s = self.now


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    new_machine = Machine(ends_s=0.0)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(time, "monotonic", lambda: new_machine.now)
    monkeypatch.setattr(time, "sleep", new_machine.nap)
    monkeypatch.setattr(os, "kill", new_machine.signal)
    monkeypatch.setattr(builtins, "open", new_machine.open)
    return new_machine


def test_end_kills_a_process_after_the_grace(machine: Machine) -> None:
    machine.ends_s = 1e9
    assert reap.end(Job("r1"), 2.0, machine.find) == 1
    assert machine.signals == [signal.SIGTERM, signal.SIGCONT, signal.SIGKILL]
    assert 2.0 <= machine.now < 2.1


@pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")
def test_below_and_find_marked_list_the_processes_of_a_job(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: str(tmp_path)})
    try:
        assert process.pid in below(os.getpid())
        assert process.pid not in below(os.getpid(), spare=process.pid)
        until(lambda: find_marked(str(tmp_path)) == [process.pid], "the mark is seen")
    finally:
        process.kill()
        process.wait()
