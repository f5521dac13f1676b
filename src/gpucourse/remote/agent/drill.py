"""A process on the node for break drills. It ends a rank, slows a rank down, or occupies the port where ranks meet.

It runs alongside the run, ends with it, and writes no file.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from gpucourse.remote.agent import reap
from gpucourse.remote.agent.job import Job

STOPPED_S, RUNNING_S = 0.008, 0.004  # a slow rank gets a third of the time, in slices shorter than a step
_STEP_S = 0.02
_FIRST_WORDS_S = 60.0


def begin(job: Job, order: dict[str, Any], not_mine: tuple[int, ...]) -> int:
    """Start the process and return its id when it is ready to act.

    `not_mine`: descriptors that the new process must close, because other processes wait until every copy is closed.
    """
    listen, say = os.pipe()
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            for descriptor in (listen, *not_mine):
                os.close(descriptor)
            _die_with(supervisor)
            _act(job, order, say)
        finally:
            os._exit(0)
    os.close(say)
    os.read(listen, 1)
    os.close(listen)
    return pid


def end(pid: int) -> None:
    """End the process that `begin` started."""
    os.kill(pid, signal.SIGKILL)  # a child that was not waited for yet: its number cannot have been reused
    os.waitpid(pid, 0)


def _act(job: Job, order: dict[str, Any], say: int) -> None:
    if order["how"] == "block-port":
        _hold(order["port"], say)
        return
    os.write(say, b"!")
    rank: int = order["rank"]
    pid = _pid_of(job, rank)
    if order["how"] == "slow-rank":
        _slow(job, rank, pid)
        return
    log = job.path("logs", f"rank{rank}.log")
    deadline = time.monotonic() + _FIRST_WORDS_S
    while time.monotonic() < deadline and not (os.path.exists(log) and os.path.getsize(log)):
        time.sleep(_STEP_S)
    time.sleep(order["after_s"])
    if not job.has("ranks", f"{rank}.json"):
        os.kill(pid, signal.SIGKILL)


def _hold(port: int, say: int) -> None:
    import socket

    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", port))
        holder.listen()
        os.write(say, b"!")
        while True:
            signal.pause()


def _slow(job: Job, rank: int, pid: int) -> None:
    end_path, log = job.path("ranks", f"{rank}.json"), job.path("logs", f"rank{rank}.log")
    while not os.path.exists(end_path):
        has_output = os.path.exists(log) and os.path.getsize(log)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED_S * (_measure_crowd() if has_output else 1.0))
        os.kill(pid, signal.SIGCONT)
        time.sleep(RUNNING_S)


def read_load_per_core(loadavg: str, cores: int) -> float:
    """Return how many processes compete for each core right now, at least 1. `loadavg` is the text of /proc/loadavg, such as
    "0.52 0.58 0.59 3/512 4711".

    If all processes wait for a core, a process that was stopped runs first when it is resumed, so it loses little. Only the
    fourth field of `loadavg` is used, because the load averages lag a minute behind.
    """
    try:
        running = int(loadavg.split()[3].split("/", maxsplit=1)[0]) - 1  # without this process
    except (IndexError, ValueError):
        return 1.0
    return max(1.0, running / cores)


def _measure_crowd() -> float:
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            return read_load_per_core(file.read(), os.cpu_count() or 1)
    except OSError:  # macOS has no such file
        return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _pid_of(job: Job, rank: int) -> int:
    process = job.read("ranks", f"{rank}.pid")
    while not process:
        time.sleep(_STEP_S)
        process = job.read("ranks", f"{rank}.pid")
    pid: int = process["pid"]
    return pid


def _die_with(supervisor: int) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    reap.die_with_parent(supervisor)
