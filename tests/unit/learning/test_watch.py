"""`watch` at a terminal: keys that act at once, a bar of the module, and a terminal that is left as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

import pytest

from gpucourse.learning import watch
from tests.learning import Learning, deploy
from tests.waiting import STUCK_S

KEYS = "r run  t try  h hint  c check  n next  l list  q quit"


@dataclass
class Watching:
    """`watch 1.1` at a terminal of its own; `settings` are those of the terminal before."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    settings: list[object]
    shown: str = ""

    def wait_for(self, words: str, *, times: int = 1) -> None:
        """Read the screen until it holds these words so often."""
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
    watching.press("z")  # of no use here
    watching.press("h")
    watching.wait_for("hint 1 of 3")
    watching.wait_for(KEYS, times=2)
    watching.press("l")
    watching.wait_for("The course")
    watching.wait_for(KEYS, times=3)
    watching.press("c")
    watching.wait_for("no run of 1.1 has succeeded yet")
    watching.wait_for(KEYS, times=4)
    watching.press("n")  # 1.1 is what comes next
    watching.wait_for("gpucourse run 1.1", times=watching.shown.count("gpucourse run 1.1") + 1)
    watching.wait_for(KEYS, times=5)
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


def test_status_watch_repeats_until_ctrl_c(learning: Learning) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "gpucourse", "status", "--watch"]
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        shown = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGINT)
        shown += process.stdout.readlines()
        assert process.wait(STUCK_S) == 130
    assert shown.count("Nothing is deployed.\n") > 1, "shown anew"


def test_wait_for_saves_returns_a_key_before_it_looks_at_files(learning: Learning) -> None:
    keys = iter(["h", "q"])
    events = watch.wait_for_saves(learning.context, (), read_key=lambda _seconds: next(keys))
    assert [next(events), next(events)] == ["h", "q"]


def test_wait_for_saves_returns_what_was_saved_however_an_editor_saves(learning: Learning, tmp_path: Path) -> None:
    first, second, new = files = (tmp_path / "a.py", tmp_path / "b.py", tmp_path / "answers.yaml")

    def touch() -> None:
        os.utime(first, ns=(1, 1))

    def replace() -> None:
        aside = second.with_suffix(".new")
        aside.write_text("x = 2\n")
        aside.rename(second)

    first.write_text("x = 1\n")
    second.write_text("x = 1\n")
    for save, path in ((touch, first), (replace, second), (lambda: new.write_text("exercise: '1.1'\n"), new)):
        known = watch.read_stamps(files)
        save()
        assert next(watch.wait_for_saves(learning.context, files, poll_s=0.01, known=known)) == (path,)


def test_wait_for_saves_waits_until_a_file_stops_growing(learning: Learning) -> None:
    path = Path("a.py")
    looks = iter([{path: (0, 0, 1)}, {path: (0, 0, 1)}, {path: (1, 10, 1)}, {path: (2, 20, 1)}, {}, {path: (3, 30, 1)}])

    class Looking:
        """As often as there is something to see."""

        now: ClassVar[dict[Path, watch.Stamp]] = {}

        def wait(self, _seconds: float) -> bool:
            return self.is_set()

        def is_set(self) -> bool:
            return self.now == {path: (9, 9, 9)}

    def look(_files: tuple[Path, ...]) -> dict[Path, watch.Stamp]:
        Looking.now = next(looks, Looking.now)
        return Looking.now

    learning.context.stop = cast("threading.Event", Looking())
    assert next(watch.wait_for_saves(learning.context, (path,), look=look)) == (path,)
    assert Looking.now == {path: (3, 30, 1)}, "not before it stayed as it was"


def test_current_is_the_exercise_of_the_newest_run(learning: Learning) -> None:
    assert watch.current(learning.context).id == "1.1"
    learning.record("1.2")
    assert watch.current(learning.context).id == "1.2"


def test_wrong_syntax_names_file_and_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("x = 1\n")
    bad.write_text("x = 1\nif x\n")
    assert watch.wrong_syntax((good,)) is None
    assert str(watch.wrong_syntax((good, bad))).startswith("bad.py:2: ")
    bad.write_bytes(b"x = '\x00'\n")
    assert str(watch.wrong_syntax((bad,))).startswith("bad.py")


def test_watch_without_a_lab_is_refused(learning: Learning) -> None:
    assert "the lab of module 1 is not deployed" in learning.types("watch", "1.1", code=3).err
    assert "there is no exercise '9.9'" in learning.types("watch", "9.9", code=2).err
