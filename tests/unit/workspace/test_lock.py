from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpucourse.errors import StackBusy
from gpucourse.workspace.lock import locked, try_locked


def test_the_second_waits_until_the_first_is_done(tmp_path: Path) -> None:
    path, waiting = tmp_path / "locks" / "a.lock", threading.Event()
    order: list[str] = []

    def heard(holder: str) -> None:
        order.append(holder)
        waiting.set()

    def second() -> None:
        with locked(path, "second", on_wait=heard):
            order.append("second")

    thread = threading.Thread(target=second)
    with locked(path, "deploy 3"):
        thread.start()
        assert waiting.wait(10)
        order.append("first done")
    thread.join(10)
    assert order == [f"'deploy 3' (process {os.getpid()})", "first done", "second"]


def test_who_cannot_wait_is_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with locked(path, "destroy 3"), pytest.raises(StackBusy, match="'destroy 3'"), locked(path, "deploy 3", wait_s=0):
        pass


def test_try_locked_says_whether_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with try_locked(path, "one") as mine:
        assert mine
        with try_locked(path, "two") as second:
            assert not second
    with try_locked(path, "three") as again:
        assert again


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    script = (
        "import sys, pathlib\nfrom gpucourse.workspace.lock import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), 'doomed'):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    doomed = subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert doomed.stdout is not None
    assert doomed.stdin is not None
    assert doomed.stdout.readline() == b"held\n"
    with try_locked(path, "me") as mine:
        assert not mine
    doomed.kill()
    doomed.wait()
    doomed.stdout.close()
    doomed.stdin.close()
    with try_locked(path, "me") as mine:
        assert mine
