"""Start the process that hosts the nodes, end it if it hangs, and do its work if it is gone. Only the drivers use this
module."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from gpucourse.local import control, layout, processes
from gpucourse.workspace.lock import take

_START_S = 30.0
_LOCK_S = 0.2


def start_host(folder: str, spec: str) -> bool:
    """Start the host of the folder and wait until it listens. Raises DriverError, OSError.

    Return False if another process holds the lock, which means that a host exists or is about to start.
    """
    directory = Path(folder)
    lock = take(directory / layout.LOCK)
    if lock is None:
        return False
    ready, writer = os.pipe()
    log = os.open(directory / layout.LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("host.py")), str(lock), str(writer)],
            cwd=directory,
            env=_environment(json.loads(spec)["uid"]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock, writer),
            start_new_session=True,
        )
    finally:
        for handle in (lock, writer, log):
            os.close(handle)
    try:
        if not _says_ready(ready):
            reason = layout.last_line(directory)
            raise control.DriverError(f"the process that hosts the simulated nodes did not start: {reason}")
    finally:
        os.close(ready)
    return True


def end_stuck_host(folder: str) -> None:
    """Kill the process that the folder's record names, if that process really is the host."""
    record = layout.read_json(Path(folder) / layout.HOST) or {}
    pid = record.get("pid")
    if isinstance(pid, int) and processes.has_marker(pid, processes.marker(processes.STACK, str(record.get("uid")))):
        processes.send(pid, signal.SIGKILL)


def remove_by_hand(folder: str, spec: str) -> bool:
    """Do the work of a missing host: end the processes and remove the files of the nodes that `spec` selects.

    If no node is left, remove everything that belongs to the stack. Return False if another process holds the lock. Raises
    control.DriverError, ValueError.
    """
    directory, request = Path(folder), json.loads(spec)
    lock: int | None = None
    if directory.is_dir() and (lock := take(directory / layout.LOCK, wait_s=_LOCK_S)) is None:
        return False
    try:
        names = layout.select_nodes(layout.node_names(directory), request)
        _end(*(processes.marker(processes.NODE, f"{request['uid']}/{name}") for name in names))
        for name in names:
            layout.remove_node_files(directory, name)
        if not layout.node_names(directory):
            _end(processes.marker(processes.STACK, request["uid"]))
            host_files = [directory / name for name in layout.HOST_FILES]
            for path in host_files + layout.list_outside(directory, request["uid"]):
                layout.remove(path)
    finally:
        if lock is not None:
            os.close(lock)
    return True


def _end(*marks: str) -> None:
    if survivors := processes.end(*marks):
        raise control.DriverError(f"processes {', '.join(map(str, survivors))} do not end")


def _environment(uid: str) -> dict[str, str]:
    """Return the caller's environment with the stack's mark, but without the variables of Terraform and of any node."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCOURSE_", "TF_"))}
    return {**inherited, processes.STACK: uid}


def _says_ready(ready: int) -> bool:
    readable, _, _ = select.select([ready], [], [], _START_S)
    return bool(readable) and os.read(ready, 1) == b"\n"
