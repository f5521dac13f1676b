from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpucourse.errors import StackBusy
from gpucourse.workspace.lock import hold_lock, is_held, take, try_lock
from tests.waiting import STUCK_S


def test_hold_lock_waits_until_the_first_is_done(tmp_path: Path) -> None:
    path, waiting = tmp_path / "locks" / "a.lock", threading.Event()
    order: list[str] = []

    def note_wait(holder: str) -> None:
        order.append(holder)
        waiting.set()

    def second() -> None:
        with hold_lock(path, "second", on_wait=note_wait):
            order.append("second")

    thread = threading.Thread(target=second)
    with hold_lock(path, "deploy 3"):
        thread.start()
        assert waiting.wait(STUCK_S)
        order.append("first done")
    thread.join(STUCK_S)
    assert order == [f"'deploy 3' (process {os.getpid()})", "first done", "second"]


def test_hold_lock_names_the_holder_when_it_cannot_wait(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with hold_lock(path, "destroy 3"), pytest.raises(StackBusy, match="'destroy 3'"), hold_lock(path, "deploy 3", wait_s=0):
        pass


def test_try_lock_succeeds_after_the_end_of_the_process_that_held_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    script = (
        "import sys, pathlib\nfrom gpucourse.workspace.lock import hold_lock\n"
        "with hold_lock(pathlib.Path(sys.argv[1]), 'doomed'):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    doomed = subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert doomed.stdout is not None
    assert doomed.stdin is not None
    assert doomed.stdout.readline() == b"held\n"
    with try_lock(path, "me") as lock:
        assert not lock
    doomed.kill()
    doomed.wait()
    doomed.stdout.close()
    doomed.stdin.close()
    with try_lock(path, "me") as lock:
        assert lock


def test_hold_lock_takes_the_new_file_when_the_old_one_was_removed(tmp_path: Path) -> None:
    """Remove the stack's files, including the first holder's lock. A third process must not hold the lock together with the
    second.
    """
    path, waiting, entered, leave = tmp_path / "a.lock", threading.Event(), threading.Event(), threading.Event()

    def second() -> None:
        with hold_lock(path, "second", on_wait=lambda _holder: waiting.set()):
            entered.set()
            assert leave.wait(STUCK_S)

    thread = threading.Thread(target=second)
    with hold_lock(path, "first"):
        thread.start()
        assert waiting.wait(STUCK_S)
        path.unlink()
    assert entered.wait(STUCK_S)
    assert is_held(path)
    leave.set()
    thread.join(STUCK_S)
    assert not is_held(path)


def test_take_gives_up_after_its_wait_and_closing_the_file_releases_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    file = take(path)
    assert file is not None
    assert take(path, wait_s=0.05) is None
    os.close(file)
    second_file = take(path)
    assert second_file is not None
    os.close(second_file)
