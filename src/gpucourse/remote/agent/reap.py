"""Ending every process of a run, found by the mark in its environment: torchrun's workers are in sessions of their own, so
neither a hang-up nor the process group reaches them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from gpucourse.remote.agent.job import MARK, Job

_STEP_S = 0.03
_LOOK_S = 0.3  # on a machine with many processes looking at all is slow: in between only the known ones are checked
_UNKILLABLE_S = 10.0  # in uninterruptible sleep: the kernel ends these when it can


def find_marked(folder: str) -> list[int]:
    """Return the living processes that carry the mark of this job folder."""
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
    """Return the living processes that descend from `root`, without `spare` and its descendants (Linux)."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state != b"Z" and int(name) != spare:
                children.setdefault(int(parent), []).append(int(name))
    descendants = list(children.get(root, []))
    for pid in descendants:
        descendants.extend(children.get(pid, []))
    return descendants


def end(job: Job, grace_s: float, members: Callable[[], list[int]] | None = None) -> int:
    """End the run: TERM to the launcher's group first (torchrun passes it on to its workers), then to every one of `members`
    (those that carry the mark), KILL after `grace_s`. Stopped processes are woken to receive it. Return how many there were."""
    find = members or (lambda: find_marked(job.folder))
    start_s = time.monotonic()
    leader = job.pid("pid")
    remaining, looked_at = find(), start_s
    members_seen = set(remaining)
    leader_told = leader is not None and leader in members_seen
    if leader is not None and leader_told:
        _signal_group(leader, signal.SIGTERM)
        _signal_group(leader, signal.SIGCONT)
    others_told = False
    while True:
        members_seen.update(remaining)
        elapsed = time.monotonic() - start_s
        if not remaining or elapsed >= grace_s + _UNKILLABLE_S:
            return len(members_seen)
        if elapsed >= grace_s:
            _signal_each(remaining, signal.SIGKILL)
        elif not others_told and (elapsed >= grace_s / 2 or leader not in remaining):
            _signal_each([pid for pid in remaining if pid != leader or not leader_told], signal.SIGTERM)
            _signal_each(remaining, signal.SIGCONT)
            others_told = True
        time.sleep(_STEP_S)
        remaining = [pid for pid in remaining if _lives(pid)]
        if not remaining or time.monotonic() - looked_at >= _LOOK_S:
            remaining, looked_at = find(), time.monotonic()


def _lives(pid: int) -> bool:
    """Return whether a process has not ended; False if only a look at all processes shows that (macOS)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _signal_each(pids: list[int], number: int) -> None:
    for pid in pids:
        _signal(pid, number)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        _signal(pid, number)


def _find_marked_by_ps(mark: bytes) -> list[int]:
    import subprocess

    listing = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], stdout=subprocess.PIPE, check=False).stdout
    lines = (line for line in listing.splitlines() if mark + b" " in line + b" ")
    return [pid for pid in (int(line.split()[0]) for line in lines) if pid != os.getpid()]
