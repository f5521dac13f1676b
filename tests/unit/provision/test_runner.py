"""The runner and its interrupts, with a Python program in Terraform's place that counts the signals it gets."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError, Interrupted, MissingError
from gpucourse.model.event import Event, Note
from gpucourse.provision.runner import Runner
from gpucourse.workspace.lock import holder, is_held
from gpucourse.workspace.stack_paths import StackPaths
from tests.waiting import STUCK_S, until

STUBBORN = """
import json, signal, sys, time
count = 0
def heard(number, frame):
    global count
    count += 1
    say(type="log", **{"@message": f"heard {count}"})
    if count >= int(sys.argv[2]):
        sys.exit(1)
def say(**words):
    print(json.dumps({"@timestamp": "2026-01-01T00:00:00.000000Z", **words}, separators=(",", ":")), flush=True)
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
    """A watcher that presses Ctrl-C `times` times: at the first event, then `pause` resource events after each note (two
    signals at once would be one)."""

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
    """It reaches Terraform once only: a second one would make it forget what it built."""
    slow = STUBBORN.replace("count += 1", "count += 1; time.sleep(0.3)")
    presser = Presser(2, pause=0)
    with pytest.raises(Interrupted, match="stopped after 0 changes"):
        runner(paths).run("apply", python(slow, "apply_start", "1"), presser)
    assert [note.split(":")[0].split(".")[0] for note in presser.notes] == ["stopping", "still saving"]
    assert paths.terraform_log("apply").read_text(encoding="utf-8").count('"heard') == 1


def test_run_keeps_a_handler_that_was_there(paths: StackPaths) -> None:
    def theirs(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, theirs)
    try:
        with pytest.raises(Interrupted):
            runner(paths).run("apply", python(STUBBORN, "apply_start", "1"), Presser(1))
        assert signal.getsignal(signal.SIGINT) is theirs
    finally:
        signal.signal(signal.SIGINT, before)


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


def test_run_gives_a_session_a_folder_and_an_environment(paths: StackPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_VAR_x", "1")
    monkeypatch.setenv("TF_CLI_ARGS_plan", "-destroy")
    monkeypatch.delenv("TF_CLI_CONFIG_FILE", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "course")
    code = (
        "import os, sys, json; print(json.dumps([os.getsid(0) == os.getpid(), sys.stdin.read(), os.getcwd(),"
        " {k: v for k, v in os.environ.items() if k.startswith(('TF_', 'AWS_PRO', 'CHECKPOINT', 'EXTRA'))}]))"
    )
    runner(paths).run("plan", python(code), print, extra={"EXTRA": "yes"})
    own_session, _, folder, environment = json.loads(paths.terraform_log("plan").read_text(encoding="utf-8"))
    assert own_session
    assert folder == str(paths.terraform)
    assert environment == {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", "AWS_PROFILE": "course", "EXTRA": "yes"}


def test_run_leaves_the_stack_free_when_a_child_goes_on(paths: StackPaths, tmp_path: Path) -> None:
    """As Terraform starts its provisioners: input from /dev/null, and no descriptor closed that was passed down to it."""
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys\n"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
        "child = subprocess.Popen(sleeper, stdin=subprocess.DEVNULL, close_fds=False)\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))"
    )
    runner(paths).run("apply", python(code), print)
    pid = int(pid_file.read_text(encoding="utf-8"))
    try:
        os.kill(pid, 0)
        assert not is_held(paths.terraform_lock)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_run_waits_for_another_run_of_the_stack(paths: StackPaths) -> None:
    go = paths.folder / "go"
    code = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    first = threading.Thread(target=lambda: runner(paths).run("apply", python(code), print))
    first.start()
    until(lambda: is_held(paths.terraform_lock) and "process" in holder(paths.terraform_lock))
    heard: list[Event] = []

    def watch(event: Event) -> None:
        heard.append(event)
        go.touch()

    runner(paths).run("plan", python("pass"), watch)
    first.join(STUCK_S)
    [note] = heard
    assert isinstance(note, Note)
    assert note.text.startswith("'terraform apply' (process ")
