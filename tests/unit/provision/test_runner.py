"""The runner and its interrupts, with a Python program in place of Terraform that counts the signals it receives."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError, Interrupted, MissingError
from gpucourse.model.event import Event, Note
from gpucourse.provision.runner import Runner
from gpucourse.workspace.paths import StackPaths
from tests.waiting import STUCK_S

STUBBORN = """
import json, os, signal, sys, time
count = 0
def heard(number, frame):
    global count
    count += 1
    say(type="log", **{"@message": f"heard {count}"})
    if count >= int(sys.argv[2]):
        sys.exit(1)
def say(**words):
    line = json.dumps({"@timestamp": "2026-01-01T00:00:00.000000Z", **words}, separators=(",", ":"))
    os.write(1, line.encode() + b"\\n")  # print would fail if the signal came while it prints
signal.signal(signal.SIGINT, heard)
kind = sys.argv[1]
hook = {"resource": {"addr": "x.y"}, "action": "create"}
say(type=kind, hook=hook, **{"@message": "ready"})
for _ in range(400):
    time.sleep(0.05)
    say(type="apply_progress", hook=hook, **{"@message": "still"})
"""


@pytest.fixture
def paths(tmp_path: Path) -> StackPaths:
    paths = StackPaths(tmp_path / "stack")
    paths.terraform.mkdir(parents=True)
    return paths


def runner(paths: StackPaths) -> Runner:
    return Runner(paths=paths, environ=dict(os.environ), stop=None, wait_s=STUCK_S)


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


class Presser:
    """A watcher that presses Ctrl-C `times` times: at the first event, then after `pause` resource events following each note,
    because two signals at once would count as one.
    """

    def __init__(self, times: int, *, pause: int = 2) -> None:
        self.left = times
        self.pause = pause
        self.countdown = 1
        self.notes: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note):
            self.notes.append(event.text)
            self.countdown = self.pause
        else:
            self.countdown -= 1
        if self.countdown == 0 and self.left:
            self.left -= 1
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("kind", "ends_at", "presses", "signals", "last_note"),
    [
        ("apply_start", 2, 3, 2, "forced: what was in flight"),
        ("apply_start", 99, 4, 2, "forced: what was in flight"),  # the fourth is SIGKILL
        ("apply_progress", 2, 2, 2, "stopping: Terraform finishes"),  # nothing changed yet: the second may force
    ],
)
def test_run_passes_ctrl_c_on_sparingly(
    paths: StackPaths, kind: str, ends_at: int, presses: int, signals: int, last_note: str
) -> None:
    presser = Presser(presses)
    with pytest.raises(Interrupted):
        runner(paths).run("apply", python(STUBBORN, kind, str(ends_at)), presser)
    log = paths.terraform_log("apply").read_text(encoding="utf-8")
    assert log.count('"heard') == signals
    assert presser.notes[-1].startswith(last_note)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_run_passes_no_second_ctrl_c_on_while_terraform_saves(paths: StackPaths) -> None:
    """Press Ctrl-C again. It must reach Terraform only once, because a second one would make it forget what it built."""
    slow_script = STUBBORN.replace("count += 1", "count += 1; time.sleep(0.3)")
    presser = Presser(2, pause=0)
    with pytest.raises(Interrupted, match="stopped after 0 changes"):
        runner(paths).run("apply", python(slow_script, "apply_start", "1"), presser)
    assert [note.split(":")[0].split(".")[0] for note in presser.notes] == ["stopping", "still saving"]
    assert paths.terraform_log("apply").read_text(encoding="utf-8").count('"heard') == 1


def test_run_reads_the_last_line_and_keeps_little_of_a_line_without_end(paths: StackPaths) -> None:
    last = json.dumps({"@message": "m", "type": "outputs", "outputs": {"nodes": {"value": 7}}})
    code = f"import sys\nfor _ in range(40): sys.stdout.write('x' * (1 << 20))\nprint()\nsys.stdout.write({last!r})"
    transcript = runner(paths).run("apply", python(code), print)
    assert transcript.outputs == {"nodes": {"value": 7}}
    assert [len(text) for text in transcript.text] == [1000]


def test_run_names_what_cannot_be_started(paths: StackPaths, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot be started: No such file"):
        runner(paths).run("plan", [str(tmp_path / "none")], print)
    paths.terraform.rmdir()
    with pytest.raises(InfrastructureError, match=r"folder .* is gone"):
        runner(paths).run("plan", python("pass"), print)
