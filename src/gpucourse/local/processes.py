"""Find processes by a variable in their environment, and end them.

Every process that a session starts inherits the variable. A process group would miss processes with their own session, such as
torchrun's workers.

Linux shows the environment in /proc, macOS through `ps -E`. On Linux, a child that dropped its environment is found through its
parent, as long as the parent is alive.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

STACK = "GPUCOURSE_STACK_UID"  # set for the host and for everything that runs on its nodes
NODE = "GPUCOURSE_NODE_UID"
DRIVER = "GPUCOURSE_DRIVER_UID"  # set for the drivers, which may outlive Terraform
SESSION = "GPUCOURSE_SESSION"
DETACHED_RUN = "GPUCOURSE_RUN_DIR"  # set for a run that outlives the connection that started it

_PROC = Path("/proc")
_POLL_S = 0.02
_STARTS_S = 2.0  # seconds for one examination of all processes: even on a busy computer, a program starts within this time
_FLAGS, _ENVIRONMENT, _ENVIRONMENT_END = 6, 47, 48  # flags, env_start, env_end of proc(5), counted from the state
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD
_EMPTY_LOOKS = 5


def marker(variable: str, value: str) -> str:
    """Return a variable in the form that it has in an environment, `NAME=value`."""
    return f"{variable}={value}"


def list_carriers(*marks: str, spare: str | None = None) -> list[int]:
    """Return the processes whose environment contains one of `marks` (`NAME=value`) exactly.

    This process, its ancestors, and processes with a variable named `spare` are left out.
    """
    ancestry = _find_ancestry()
    return sorted(pid for pid, environment in _environments() if pid not in ancestry and _carries(environment, marks, spare))


def list_session_processes(mark: str, group: int | None, spare: str) -> list[int]:
    """Return the processes with `mark`, and the processes in the group `group`, because their environment may be hidden.

    Processes with a variable named `spare` are left out.
    """
    members = set(list_carriers(mark, spare=spare))
    if group is not None:
        members.update(
            pid for pid, environment in _environments() if _group_of(pid) == group and not _has_variable(environment, spare)
        )
    return sorted(members)


def holds(environment: bytes, mark: str) -> bool:
    """Return whether an environment (entries that end in a zero byte) has the variable `mark`."""
    return b"\0" + mark.encode() + b"\0" in b"\0" + environment + b"\0"


def send(pid: int, number: int) -> None:
    """Signal one process. Do nothing if it has ended."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def end(
    *marks: str,
    spare: str | None = None,
    grace_s: float = 2.0,
    kill_s: float = 3.0,
    signal_process: Callable[[int, int], None] = send,
) -> list[int]:
    """End every process with one of `marks`, and its descendants. Return the ids of processes that are still alive.

    Send SIGTERM, wait `grace_s` seconds, then send SIGKILL until no process is left, for at most `kill_s` seconds.
    """
    signalled: set[int] = set()
    unmarked = _find_unmarked(marks, spare)
    start_s = time.monotonic()
    while alive := [
        *list_carriers(*marks, spare=spare),
        *(pid for pid, start in unmarked.items() if _read_beginning(pid) == start),
    ]:
        elapsed_s = time.monotonic() - start_s
        if elapsed_s >= grace_s + kill_s:
            break
        for pid in alive:
            if elapsed_s >= grace_s:
                signal_process(pid, signal.SIGKILL)
            elif pid not in signalled:
                signal_process(pid, signal.SIGTERM)
                signal_process(pid, signal.SIGCONT)  # a stopped one could not act on the first signal
                signalled.add(pid)
        time.sleep(_POLL_S)
    return sorted(alive)


def send_group(leader: int, number: int) -> None:
    """Signal a whole process group. Do nothing if it has ended."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def has_marker(pid: int, mark: str) -> bool:
    """Return whether this process is alive and has the variable `mark`."""
    return holds(dict(_environments()).get(pid, b""), mark)


def command_of(pid: int) -> str:
    """Return the command line of a process, shortened, or an empty string if the process has ended."""
    if _PROC.joinpath("self").exists():
        words = _read(_PROC / str(pid) / "cmdline").replace(b"\0", b" ")
    else:
        words = b" ".join(_ps("-o", "command=", "-p", str(pid)))
    return " ".join(words.decode(errors="replace").split())[:100]


def _find_unmarked(marks: Collection[str], spare: str | None) -> dict[int, str]:
    """Return the unmarked descendants of processes with one of `marks`. Linux only.

    Each has its start time, in case its id is reused.
    """
    if not _PROC.joinpath("self").exists():
        return {}
    environments, ancestry = dict(_environments()), _find_ancestry()
    carriers = {pid for pid, environment in environments.items() if pid not in ancestry and _carries(environment, marks, spare)}
    if not carriers:
        return {}
    unrelated = {
        pid
        for pid, environment in environments.items()
        if _has_variable(environment, STACK) or (spare and _has_variable(environment, spare))
    } - carriers
    parents = {pid: _parent(pid) for pid in environments.keys() - unrelated - ancestry}

    def belongs(pid: int) -> bool:
        while pid in parents and pid not in carriers:
            pid = parents[pid]
        return pid in carriers

    return {pid: start for pid in parents.keys() - carriers if belongs(pid) and (start := _read_beginning(pid))}


def _read_beginning(pid: int) -> str:
    """Return the start time of a process, in ticks since the computer started, or an empty string if the process has ended."""
    stat = _read(_PROC / str(pid) / "stat").rpartition(b")")[2].split()
    return stat[19].decode() if len(stat) > 19 and stat[0] not in {b"Z", b"X"} else ""


def _carries(environment: bytes, marks: Collection[str], spare: str | None) -> bool:
    return any(holds(environment, mark) for mark in marks) and not (spare and _has_variable(environment, spare))


def _has_variable(environment: bytes, variable: str) -> bool:
    return b"\0" + variable.encode() + b"=" in b"\0" + environment


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _environments() -> list[tuple[int, bytes]]:
    if _PROC.joinpath("self").exists():
        until = time.monotonic() + _STARTS_S
        return [(int(path.name), _read_environment(path, until)) for path in _PROC.iterdir() if path.name.isdigit()]
    return list(_read_ps())


def _read_environment(process: Path, until: float, pause: Callable[[float], None] = time.sleep) -> bytes:
    """Return the environment of a process from its folder in /proc, or nothing if it has ended or we may not read it.

    While a process starts another program (`execve`), its environment seems empty for a moment. So it counts as empty only if
    several looks find it empty. Otherwise, a process might be overlooked and not ended.

    `until`: the last time, on the monotonic clock, at which this function looks again.
    `pause`: a function that waits between two looks.
    """
    empty_looks = 0
    while True:
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            return b""
        stat = _read(process / "stat").rpartition(b")")[2].split()
        if environment or _has_no_program(stat) or time.monotonic() > until:
            return environment
        empty_looks = empty_looks + 1 if stat[_ENVIRONMENT_END] == stat[_ENVIRONMENT] != b"0" else 0
        if empty_looks == _EMPTY_LOOKS:
            return b""
        pause(0.001)


def _has_no_program(stat: list[bytes]) -> bool:
    """Return whether a process has ended or belongs to the kernel. `stat`: the fields of its /proc/PID/stat, beginning with
    the state."""
    return len(stat) <= _ENVIRONMENT_END or stat[0] in {b"Z", b"X"} or bool(int(stat[_FLAGS]) & _KERNEL_THREAD)


def _read_ps() -> list[tuple[int, bytes]]:
    """Return each process with its environment, from `ps`.

    On macOS, the environment follows the command on the same line. The values of the marks never contain a blank.
    """
    lines = (line.split(None, 1) for line in _ps("-axEww", "-o", "pid=,command="))
    return [(int(words[0]), words[1].replace(b" ", b"\0")) for words in lines if len(words) == 2 and words[0].isdigit()]


def _find_ancestry() -> set[int]:
    """Return this process and its ancestors. A command that was typed in a node's own shell must not end them."""
    parents = {} if _PROC.joinpath("self").exists() else _parents_from_ps()
    line, pid = {os.getpid()}, os.getppid()
    while pid > 1 and pid not in line:
        line.add(pid)
        pid = parents.get(pid, 0) if parents else _parent(pid)
    return line


def _parent(pid: int) -> int:
    stat = _read(_PROC / str(pid) / "stat").rpartition(b")")[2].split()  # the name in brackets may contain blanks and brackets
    return int(stat[1]) if len(stat) > 1 else 0


def _parents_from_ps() -> dict[int, int]:
    return {int(pid): int(parent) for pid, parent in (line.split() for line in _ps("-ax", "-o", "pid=,ppid="))}


def _ps(*options: str) -> list[bytes]:
    import subprocess

    return subprocess.run(["ps", *options], capture_output=True, check=False).stdout.splitlines()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
