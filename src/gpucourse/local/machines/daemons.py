"""The daemons of a machine: sshd, and under Slurm also munged with slurmctld or slurmd. This module runs inside the machine, as
its root user."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gpucourse.local.machines import root

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PID_FILES = {
    "sshd": "/run/sshd.pid",
    "munged": "/run/munge/munged.pid",
    "slurmctld": "/run/slurmctld.pid",
    "slurmd": "/run/slurmd.pid",
}
LOGS = {
    "munged": "/var/log/munge/munged.log",
    "slurmctld": "/var/log/slurm/slurmctld.log",
    "slurmd": "/var/log/slurm/slurmd.log",
}
MUNGE_KEY = "/etc/munge/munge.key"

_START_S, _STOP_S, _POLL_S = 10.0, 5.0, 0.01


class DaemonFailed(Exception):
    """A daemon did not start. The message contains its last output."""


def list_daemons(machine: Mapping[str, Any]) -> list[str]:
    """Return the daemons of this machine, in the order in which they start."""
    if not machine.get("slurm"):
        return ["sshd"]
    return ["munged", "sshd", "slurmctld" if machine["role"] == "head" else "slurmd"]


def ensure(machine: Mapping[str, Any], *, restarts: Collection[str] = ()) -> bool:
    """Make every daemon run with the configuration of `machine`. Return whether any daemon had to start.

    A missing daemon is started. A daemon is restarted if its configuration changed or if it is in `restarts`. Raises
    DaemonFailed, OSError.
    """
    stale = _configure(machine) | set(restarts)
    has_started = False
    for name in list_daemons(machine):
        if name in stale:
            _stop(name)
        if find_process(name) is None:
            _start(name, machine)
            has_started = True
    return has_started


def find_process(name: str, at: str = "") -> int | None:
    """Return the daemon's process id, or None if the daemon is not running. The id is valid inside the machine.

    `at`: the root of the machine's file system, as seen from this process.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        pid = int(Path(f"{at}{PID_FILES[name]}").read_text(encoding="utf-8"))
        stat = Path(f"{at}/proc/{pid}/stat").read_text(encoding="utf-8")
        command, state = stat.partition("(")[2].rpartition(")")[0], stat.rpartition(")")[2].split()[0]
        if command == name and state not in "ZX":
            return pid
    return None


def _configure(machine: Mapping[str, Any]) -> set[str]:
    """Write the daemons' configuration. Return the daemons whose configuration changed."""
    stale = set()
    if root.write("/etc/ssh/sshd_config", str(machine["sshd_config"])):
        stale.add("sshd")
    if root.write("/etc/ssh/host_key", str(machine["host_key"]), mode=0o600):
        stale.add("sshd")
    if not machine.get("slurm"):
        return stale
    munge, slurm = root.ids("munge"), root.ids("slurm")
    for folder in ("/etc/munge", "/var/lib/munge", "/var/log/munge", "/run/munge"):
        os.chown(folder, *munge)
        Path(folder).chmod(0o755 if folder == "/run/munge" else 0o700)
    for folder in ("/var/lib/slurm", "/var/lib/slurm/slurmctld", "/var/log/slurm"):
        os.chown(folder, *slurm)
    if root.write(MUNGE_KEY, str(machine["munge_key"]), mode=0o400, owner=munge):
        stale |= {"munged", "slurmctld", "slurmd"}  # what they logged about the old key is then outdated
    changed_files = {name for name, text in machine["slurm"].items() if root.write(f"/etc/slurm/{name}", text)}
    if changed_files:
        stale |= {"slurmctld", "slurmd"}
    return stale


def _start(name: str, machine: Mapping[str, Any]) -> None:
    command = ["/usr/sbin/sshd", "-f", "/etc/ssh/sshd_config"] if name == "sshd" else [name]
    user, group = root.ids("munge") if name == "munged" else (0, 0)
    # A variable marks processes so that they can be found from outside; a session inherits its variables from sshd.
    environment = {"PATH": PATH, "LANG": "C.UTF-8", **machine["marks"]}
    # The output goes to a file, because sshd keeps its end of a pipe open as long as it lives. sshd gets no session of its
    # own: as a child of the first process with its own session, it would assume that it is a daemon already, and not return.
    output_file = Path(f"/run/{name}.out")
    with output_file.open("wb") as output:
        process = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=user,
            group=group,
            extra_groups=[],
            umask=0o022,  # munged refuses files that others may write to
            timeout=_START_S,
            check=False,
        )
    if process.returncode or not _appears(name):
        logs = [Path(LOGS[name])] if name in LOGS else []
        raise DaemonFailed(f"{name} does not start: {last_lines(output_file, *logs)}")


def _appears(name: str) -> bool:
    deadline = time.monotonic() + _START_S
    while find_process(name) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _stop(name: str) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _STOP_S
        while (pid := find_process(name)) is not None and time.monotonic() < deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            time.sleep(_POLL_S)


def last_lines(*files: Path) -> str:
    """Return the last three lines of a daemon's output and logs."""
    lines: list[str] = []
    for file in files:
        with contextlib.suppress(OSError):
            lines += file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return " / ".join(lines[-3:]) or "it printed nothing"


def make_key() -> str:
    """Return a new key for munge. munge accepts any bytes, but this key is base64 text, because it is sent in a JSON
    document."""
    return base64.b64encode(os.urandom(512)).decode()
