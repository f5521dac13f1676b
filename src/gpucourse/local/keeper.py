"""Start the process that hosts the nodes, replace it if it hangs, do its work if it is gone. For the drivers."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpucourse.local import layout, processes
from gpucourse.workspace.lock import take

_START_S = 30.0
_LOCK_S = 0.2


class HostDied(Exception):
    """The host ended before it listened; the message holds its last output."""


class StillAlive(Exception):
    """Processes of a node that cannot be ended; the message names them."""


def start_host(folder: str, spec: str) -> bool:
    """Start the host of the folder and wait until it listens. Return False if another process holds the lock, so that a host
    exists already, or soon will. Raises HostDied, OSError."""
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
            raise HostDied(f"the process that hosts the simulated nodes did not start: {_last_words(directory / layout.LOG)}")
    finally:
        os.close(ready)
    return True


def end_stuck_host(folder: str) -> None:
    """Kill the host that the folder names, if that process really is one."""
    record = layout.read_json(Path(folder) / layout.HOST) or {}
    pid = record.get("pid")
    if isinstance(pid, int) and processes.has_marker(pid, processes.marker(processes.STACK, str(record.get("uid")))):
        processes.send(pid, signal.SIGKILL)


def remove_by_hand(folder: str, spec: str) -> bool:
    """End, without a host, the processes and remove the files of the node that `spec` names, or of every node from its `count`
    on; with the last node everything of the stack. Return False if another process holds the lock. Raises StillAlive."""
    directory, request = Path(folder), json.loads(spec)
    if not directory.is_dir():
        _end_nodes(request, _list_removed(directory, request))
        layout.remove(layout.sockets(request["uid"]))
        return True
    lock = take(directory / layout.LOCK, wait_s=_LOCK_S)
    if lock is None:
        return False
    try:
        names = _list_removed(directory, request)
        _end_nodes(request, names)
        for name in names:
            layout.remove_node_files(directory, name)
        if not layout.node_names(directory):
            _end(processes.marker(processes.STACK, request["uid"]))
            beside = (layout.sockets(request["uid"]), *layout.find_links(directory))
            for path in (*(directory / name for name in layout.HOST_FILES), *beside):
                layout.remove(path)
    finally:
        os.close(lock)
    return True


def list_removals(spec: str) -> list[str]:
    """Return the requests that remove the nodes of the current folder from the `count` in `spec` on, one node each."""
    request = json.loads(spec)
    return [json.dumps({"uid": request["uid"], "name": name}) for name in _list_removed(Path.cwd(), request)]


def _list_removed(folder: Path, request: dict[str, Any]) -> list[str]:
    if "name" in request:
        return [layout.check_name(request["name"])]
    return layout.select_beyond(layout.node_names(folder), request.get("count"))


def _end_nodes(request: dict[str, Any], names: list[str]) -> None:
    """End what runs on these nodes: if no node stays, by looking at all processes once instead of once for each node."""
    uid = request["uid"]
    if request.get("count") == 0:
        _end(processes.marker(processes.STACK, uid))
    else:
        _end(*(processes.marker(processes.NODE, f"{uid}/{name}") for name in names))


def _end(*marks: str) -> None:
    survivors = [pid for mark in marks for pid in processes.end(mark)[1]]
    if survivors:
        raise StillAlive(f"processes {', '.join(map(str, survivors))} do not end")


def _environment(uid: str) -> dict[str, str]:
    """Return the caller's environment, without variables of Terraform or of a node whose shell started this; with the stack's
    mark."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCOURSE_", "TF_"))}
    return {**inherited, processes.STACK: uid}


def _says_ready(ready: int) -> bool:
    readable, _, _ = select.select([ready], [], [], _START_S)
    return bool(readable) and os.read(ready, 1) == b"\n"


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[-1]} (full log: {log})" if lines else f"it wrote nothing to {log}"
