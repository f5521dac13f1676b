"""End every process of a run. The processes are found by the mark in their environment.

torchrun's workers have their own sessions, so neither a hang-up nor a signal to the process group reaches them.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from gpucourse.remote.agent.job import MARK, Job

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_STEP_S = 0.03
# The time between two examinations of all processes, which are slow if there are many. In between, only the processes that were
# found so far are checked.
_LOOK_S = 0.3
_UNKILLABLE_S = 10.0  # in uninterruptible sleep: the kernel ends these when it can


def read_stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat, beginning with the state (Linux), or an empty list if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def adopt_orphans() -> None:
    """Become the parent of each descendant that loses its parent (Linux), so that it is found even without the mark."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends (Linux). If it has already ended, exit immediately."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(137)


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def find_marked(folder: str) -> list[int]:
    """Return the living processes with the mark of this job folder."""
    mark = (f"{MARK}={folder}").encode("utf-8", "surrogateescape")
    if not os.path.isdir("/proc/self"):
        return _find_marked_by_ps(mark)
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    pids.append(int(name))
        except OSError:
            continue
    return pids


def below(root: int, spare: int = 0) -> list[int]:
    """Return the living processes that descend from `root`, except `spare` and its descendants (Linux)."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            fields = read_stat(int(name))
            if fields and fields[0] != b"Z" and int(name) != spare:
                children.setdefault(int(fields[1]), []).append(int(name))
    descendants = list(children.get(root, []))
    for pid in descendants:
        descendants.extend(children.get(pid, []))
    return descendants


def end(job: Job, grace_s: float, members: Callable[[], list[int]] | None = None) -> int:
    """End the run and return the number of its processes.

    Send TERM to the launcher's group first, because torchrun passes it on to its workers. Then send TERM to each of `members`
    (by default the processes with the mark), and KILL after `grace_s`. Stopped processes are resumed so that they receive the
    signal.
    """
    find = members or (lambda: find_marked(job.folder))
    start_s = time.monotonic()
    remaining, looked_at = find(), start_s
    members_seen = set(remaining)
    leader = job.pid("pid")
    if leader is not None and leader in members_seen:
        _signal_group(leader, signal.SIGTERM)
        _signal_group(leader, signal.SIGCONT)
    else:
        leader = None
    has_told_others = False
    while True:
        members_seen.update(remaining)
        elapsed = time.monotonic() - start_s
        if not remaining or elapsed >= grace_s + _UNKILLABLE_S:
            return len(members_seen)
        if elapsed >= grace_s:
            signal_each(remaining, signal.SIGKILL)
        elif not has_told_others and (elapsed >= grace_s / 2 or leader not in remaining):
            signal_each([pid for pid in remaining if pid != leader], signal.SIGTERM)
            signal_each(remaining, signal.SIGCONT)
            has_told_others = True
        time.sleep(_STEP_S)
        remaining = [pid for pid in remaining if _lives(pid)]
        if not remaining or time.monotonic() - looked_at >= _LOOK_S:
            remaining, looked_at = find(), time.monotonic()


def _lives(pid: int) -> bool:
    """Return whether a process has not ended. On macOS, always return False, because only an examination of all processes
    shows this there."""
    fields = read_stat(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def signal_each(pids: list[int], number: int) -> None:
    """Send a signal to each of these processes that still exists."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def _signal_group(pid: int, number: int) -> None:
    with suppress(OSError):
        os.killpg(pid, number)


def _find_marked_by_ps(mark: bytes) -> list[int]:
    import subprocess

    listing = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], stdout=subprocess.PIPE, check=False).stdout
    lines = (line for line in listing.splitlines() if mark + b" " in line + b" ")
    return [pid for pid in (int(line.split()[0]) for line in lines) if pid != os.getpid()]
