"""The command `watch` at a terminal: keys that act at once, and a terminal that is restored."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from dataclasses import dataclass

import pytest

from tests.learning import Learning, deploy
from tests.waiting import STUCK_S

KEYS = "r run  t try  h hint  c check  n next  l list  q quit"


@dataclass
class Watching:
    """`watch 1.1` at a separate terminal; `settings` are the terminal's settings before the command."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    settings: list[object]
    shown: str = ""

    def wait_for(self, words: str, *, times: int = 1) -> None:
        """Read the screen until it has shown these words this many times."""
        deadline = time.monotonic() + STUCK_S
        while self.shown.count(words) < times:
            ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{words} did not come: {self.shown}"
            self.shown += os.read(self.master, 1 << 16).decode()

    def press(self, key: str) -> None:
        """Press one key."""
        os.write(self.master, key.encode())


@pytest.fixture
def watching(learning: Learning) -> object:
    deploy(learning)
    master, slave = pty.openpty()
    settings = termios.tcgetattr(slave)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, "-m", "gpucourse", "watch", "1.1"], env=environ, stdin=slave, stdout=slave, stderr=slave
    )
    try:
        yield Watching(process, master, slave, settings)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def test_watch_acts_on_each_key(watching: Watching) -> None:
    watching.wait_for(KEYS)
    assert "1 Rivers  ────────────────────  0 of 2 done" in watching.shown
    assert not termios.tcgetattr(watching.slave)[3] & termios.ECHO  # keys are not shown, whatever the program is doing
    watching.press("z")  # of no use here
    for number in (1, 2, 3):
        watching.press("h")
        watching.wait_for(f"hint {number} of 3")
        watching.wait_for(KEYS, times=number + 1)
    assert "The next hint:" not in watching.shown
    assert "That was the last hint" in watching.shown
    watching.press("l")
    watching.wait_for("The course")
    watching.wait_for(KEYS, times=5)
    watching.press("c")
    watching.wait_for("no run of 1.1 has succeeded yet")
    watching.wait_for(KEYS, times=6)
    watching.press("n")  # 1.1 is what comes next
    watching.wait_for("gpucourse run 1.1", times=watching.shown.count("gpucourse run 1.1") + 1)
    watching.wait_for(KEYS, times=7)
    watching.press("q")
    watching.wait_for("no longer watching")
    assert watching.process.wait(STUCK_S) == 0
    assert termios.tcgetattr(watching.slave) == watching.settings


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_watch_that_is_interrupted_restores_the_terminal(watching: Watching, number: signal.Signals) -> None:
    watching.wait_for(KEYS)
    watching.process.send_signal(number)
    watching.wait_for("no longer watching")
    watching.process.wait(STUCK_S)
    assert termios.tcgetattr(watching.slave) == watching.settings


def test_watch_without_a_lab_is_refused(learning: Learning) -> None:
    assert "the lab of module 1 is not deployed" in learning.types("watch", "1.1", code=3).err
    assert "there is no exercise '9.9'" in learning.types("watch", "9.9", code=2).err
