"""Parallel tasks: in order, limited, each with its result or its error, and Ctrl-C handled in one place."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import traceback

import pytest

from gpucourse.errors import CloudUnreachable, PermissionRefused, UsageError
from gpucourse.parallel import run_all, try_all
from tests.waiting import STUCK_S


def _fail(error: Exception) -> int:
    raise error


def test_run_all_keeps_the_order_of_the_tasks_when_the_last_ends_first() -> None:
    last_ended = threading.Event()

    def first() -> int:
        assert last_ended.wait(STUCK_S)
        return 1

    def last() -> int:
        last_ended.set()
        return 2

    assert run_all([first, last], limit=2) == [1, 2]
    assert run_all([], limit=2) == []


def test_run_all_keeps_to_its_limit() -> None:
    barrier = threading.Barrier(2, timeout=STUCK_S)
    lock, task_count, peak = threading.Lock(), 0, 0

    def task() -> None:
        nonlocal task_count, peak
        with lock:
            task_count += 1
            peak = max(peak, task_count)
        barrier.wait()
        with lock:
            task_count -= 1

    run_all([task] * 6, limit=2)
    assert peak == 2


def test_run_all_tries_every_task_and_raises_the_first_error() -> None:
    event = threading.Event()

    def good() -> int:
        event.set()
        return 3

    tasks = [lambda: _fail(UsageError("first")), lambda: _fail(PermissionRefused("second")), good]
    assert [type(result) for result in try_all(tasks, limit=3)] == [UsageError, PermissionRefused, int]
    with pytest.raises(UsageError, match="first"):
        run_all(tasks, limit=1)
    assert event.is_set()


def test_try_all_leaves_a_task_alone_that_takes_too_long() -> None:
    go_on = threading.Event()
    [result] = try_all([lambda: int(go_on.wait(STUCK_S))], limit=2, within_s=0.2)
    go_on.set()
    assert isinstance(result, CloudUnreachable)


@pytest.mark.parametrize("count", [1, 2])
def test_try_all_raises_an_error_that_is_not_of_gpucourse(count: int) -> None:
    tasks = [lambda: _fail(KeyError("ours"))] * count
    with pytest.raises(KeyError):
        try_all(tasks, limit=2, within_s=5.0)
    with pytest.raises(KeyError):
        try_all(tasks, limit=2, on_interrupt=lambda: None)


def test_try_all_runs_a_single_task_in_the_thread_of_the_caller() -> None:
    threads = try_all([threading.current_thread], limit=4, on_interrupt=lambda: None)
    assert threads == [threading.current_thread()]


_WAITING = """
import signal, sys, threading
from gpucourse.parallel import try_all
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests themselves run in the background
stop = threading.Event()
both = threading.Barrier(2)
ended = []

def task():
    if both.wait() == 0:
        print("ready", flush=True)
    stop.wait(60)
    ended.append(1)

try:
    try_all([task, task, task], limit=2, **({"on_interrupt": stop.set} if sys.argv[1] == "told" else {}))
except KeyboardInterrupt:
    print("interrupted", len(ended), flush=True)
"""


@pytest.mark.parametrize(("kind", "message"), [("told", "interrupted 2"), ("untold", "interrupted 0")])
def test_try_all_after_ctrl_c_tells_the_tasks_and_waits_or_leaves_at_once(kind: str, message: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _WAITING, kind], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
            assert child.communicate(timeout=STUCK_S)[0] == f"{message}\n"
            assert child.returncode == 0
        finally:
            child.kill()


def test_try_all_notices_a_ctrl_c_that_does_not_wake_the_caller() -> None:
    """Deliver the signal to another thread. A signal just before the wait begins does not wake the caller either."""
    release, event, caller = threading.Event(), threading.Event(), threading.get_ident()

    def take_signal() -> None:
        while [frame.name for frame in traceback.extract_stack(sys._current_frames()[caller])][-3:] != [
            "_wait",
            "wait",
            "wait",
        ]:
            pass
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        release.wait(STUCK_S)
        event.set()

    try:
        with pytest.raises(KeyboardInterrupt):
            try_all([take_signal], limit=1)
        assert not event.is_set(), "heard only when the task had ended"
    finally:
        release.set()
