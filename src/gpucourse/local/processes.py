"""Find processes by a variable in their environment, and end them.

A variable is inherited by every process that a session starts, even by those that make a session of their own (as torchrun's
workers do), which no process group reaches. Linux shows the environment in /proc, macOS through `ps -E`. On Linux a child that
dropped its environment is found through its parent, as long as that lives.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

STACK = "GPUCOURSE_STACK_UID"  # carried by the host and by everything that runs on its nodes
NODE = "GPUCOURSE_NODE_UID"
DRIVER = "GPUCOURSE_DRIVER_UID"  # carried by what brings a node up: whoever ends its Terraform does not end it
SESSION = "GPUCOURSE_SESSION"
DETACHED_RUN = "GPUCOURSE_RUN_DIR"  # carried by a run that outlives the connection that started it

_PROC = Path("/proc")
_POLL_S = 0.02
_STARTS_S = 2.0  # for one look at all processes: more than a program takes to start, also on a busy computer
_MEMORY, _ENVIRONMENT, _ENVIRONMENT_END = 20, 47, 48  # vsize, env_start, env_end of proc(5), counted from the state


def marker(variable: str, value: str) -> str:
    """The form of a variable in an environment."""
    return f"{variable}={value}"


def list_carriers(mark: str, *, spare: str | None = None) -> list[int]:
    """The processes whose environment holds exactly the variable `mark` (`NAME=value`), without this process and those that it
    descends from. Those that have a variable of the name `spare` are left out."""
    own = _line_of_descent()
    return sorted(pid for pid, environment in _environments() if pid not in own and holds(environment, mark, spare))


def of_session(mark: str, group: int | None, spare: str) -> list[int]:
    """The processes that carry `mark`, and those of the process group `group` that hide their environment; without those that
    have a variable of the name `spare`."""
    members = set(list_carriers(mark, spare=spare))
    if group is not None:
        members.update(pid for pid, environment in _environments() if _group_of(pid) == group and not _has(environment, spare))
    return sorted(members)


def holds(environment: bytes, mark: str, spare: str | None = None) -> bool:
    """Whether an environment (entries that end in a zero byte) has the variable `mark`, and none of the name `spare`."""
    return b"\0" + mark.encode() + b"\0" in b"\0" + environment + b"\0" and not (spare and _has(environment, spare))


def send(pid: int, number: int) -> None:
    """Signal one process; nothing happens if it has gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def end(
    mark: str,
    *,
    spare: str | None = None,
    grace_s: float = 2.0,
    kill_s: float = 3.0,
    signal_process: Callable[[int, int], None] = send,
) -> tuple[list[int], list[int]]:
    """End every process that carries `mark`, and what descends from it: SIGTERM, `grace_s` to clean up, then SIGKILL until none
    is seen, at most for `kill_s`. Gives the ids of those that were there, and of those that still are."""
    seen: set[int] = set()
    told: set[int] = set()
    bare = _bare(mark, spare)
    started = time.monotonic()
    while alive := [*list_carriers(mark, spare=spare), *(pid for pid, began in bare.items() if _read_beginning(pid) == began)]:
        seen.update(alive)
        waited = time.monotonic() - started
        if waited >= grace_s + kill_s:
            break
        for pid in alive:
            if waited >= grace_s:
                signal_process(pid, signal.SIGKILL)
            elif pid not in told:
                signal_process(pid, signal.SIGTERM)
                signal_process(pid, signal.SIGCONT)  # a stopped one could not act on the first signal
                told.add(pid)
        time.sleep(_POLL_S)
    return sorted(seen), sorted(alive)


def send_group(leader: int, number: int) -> None:
    """Signal a whole process group; nothing happens if it has gone."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def has_marker(pid: int, mark: str) -> bool:
    """Whether this one process is alive and has the variable `mark`."""
    if _PROC.joinpath("self").exists():
        return holds(_read_environment(_PROC / str(pid), time.monotonic() + _STARTS_S), mark)
    return any(number == pid and holds(environment, mark) for number, environment in _environments())


def command_of(pid: int) -> str:
    """The command line of a process, shortened; empty if it has gone."""
    words = (
        _read(_PROC / str(pid) / "cmdline").replace(b"\0", b" ") if _PROC.joinpath("self").exists() else _ps(pid, "command=")
    )
    return " ".join(words.decode(errors="replace").split())[:100]


def _bare(mark: str, spare: str | None) -> dict[int, str]:
    """Unmarked descendants of processes with `mark`, with their start times, in case a number is reused. Linux
    only."""
    if not _PROC.joinpath("self").exists():
        return {}
    environments, own = dict(_environments()), _line_of_descent()
    carriers = {pid for pid, environment in environments.items() if pid not in own and holds(environment, mark, spare)}
    if not carriers:
        return {}
    others = {
        pid for pid, environment in environments.items() if _has(environment, STACK) or (spare and _has(environment, spare))
    } - carriers
    parents = {pid: _parent(pid) for pid in environments.keys() - others - own}

    def belongs(pid: int) -> bool:
        while pid in parents and pid not in carriers:
            pid = parents[pid]
        return pid in carriers

    return {pid: began for pid in parents.keys() - carriers if belongs(pid) and (began := _read_beginning(pid))}


def _read_beginning(pid: int) -> str:
    """When a process began, in ticks since the computer started; empty if it has gone, or only its exit code is left."""
    stat = _read(_PROC / str(pid) / "stat").rpartition(b")")[2].split()
    return stat[19].decode() if len(stat) > 19 and stat[0] not in {b"Z", b"X"} else ""


def _has(environment: bytes, variable: str) -> bool:
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
    return list(_from_ps())


def _read_environment(process: Path, until: float) -> bytes:
    """The environment of a process, by its folder in /proc; empty where it has gone or is not ours to read. While a process
    starts another program (`execve`) it has none: that is waited for, since what is not seen is not ended."""
    while True:
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            return b""
        if environment or _is_without(process) or time.monotonic() > until:
            return environment
        time.sleep(0.001)


def _is_without(process: Path) -> bool:
    """Whether a process that shows no environment has none: it has no memory (it has ended, or is the kernel's), or what it was
    started with is empty. The place of an environment is 0 until the program has been loaded."""
    stat = _read(process / "stat").rpartition(b")")[2].split()
    if len(stat) <= _ENVIRONMENT_END or stat[_MEMORY] == b"0":
        return True
    return stat[_ENVIRONMENT_END] != b"0" and stat[_ENVIRONMENT_END] == stat[_ENVIRONMENT]


def _from_ps() -> list[tuple[int, bytes]]:
    """On macOS the environment follows the command, in one line; the markers' values never hold a blank."""
    import subprocess

    listed = subprocess.run(["ps", "-axEww", "-o", "pid=,command="], capture_output=True, check=False).stdout
    lines = (line.split(None, 1) for line in listed.splitlines())
    return [(int(words[0]), words[1].replace(b" ", b"\0")) for words in lines if len(words) == 2 and words[0].isdigit()]


def _line_of_descent() -> set[int]:
    """This process and its ancestors: a command that was typed in a node's own shell must not end them."""
    parents = {} if _PROC.joinpath("self").exists() else _parents_from_ps()
    line, pid = {os.getpid()}, os.getppid()
    while pid > 1 and pid not in line:
        line.add(pid)
        pid = parents.get(pid, 0) if parents else _parent(pid)
    return line


def _parent(pid: int) -> int:
    stat = _read(_PROC / str(pid) / "stat").rpartition(b")")[2].split()  # the name in brackets may hold blanks and brackets
    return int(stat[1]) if len(stat) > 1 else 0


def _parents_from_ps() -> dict[int, int]:
    import subprocess

    listed = subprocess.run(["ps", "-ax", "-o", "pid=,ppid="], capture_output=True, check=False).stdout.splitlines()
    return {int(pid): int(parent) for pid, parent in (line.split() for line in listed)}


def _ps(pid: int, column: str) -> bytes:
    import subprocess

    return subprocess.run(["ps", "-o", column, "-p", str(pid)], capture_output=True, check=False).stdout


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
