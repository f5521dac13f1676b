"""Find the state of simulated nodes from outside: from the host's lock, each node's first line, and the environments of
processes.

`status` uses this module for every stack, so it imports little and needs only milliseconds.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gpucourse.local import control, layout, processes
from gpucourse.model.deployment import Leftover, NodeHealth
from gpucourse.workspace.lock import is_held

_ADDRESS = "127.0.0.1"
_PATIENCE_S = 1.0
_CHECK_S = 5.0
_MAX_LINE = 255  # RFC 4253, 4.2


def banner(uid: str, name: str) -> str:
    """Return the node's name for the first line that it sends to a client. It contains neither dashes nor blanks."""
    return f"gpucourse_{_plain(uid)}_{_plain(name)}"


def inspect(nodes_folder: Path, node_names: Sequence[str]) -> list[NodeHealth]:
    """Return the state of each node right now. A node that does not answer within a second counts as silent."""
    if not nodes_folder.is_dir():
        return [_make_unhealthy(name, f"its folder {layout.node_folder(nodes_folder, name)} is gone") for name in node_names]
    if not is_held(nodes_folder / layout.LOCK):
        return [_make_unhealthy(name, "the process that hosts the nodes has ended") for name in node_names]
    records = {name: layout.read_json(layout.description(nodes_folder, name)) for name in node_names}
    ports = {name: record["port"] for name, record in records.items() if record and isinstance(record.get("port"), int)}
    first_lines = _first_lines(ports.values())
    uid = str((layout.read_json(nodes_folder / layout.HOST) or {}).get("uid", ""))
    machines = any(record and record.get("private_address") != _ADDRESS for record in records.values())
    daemons = machines or (nodes_folder / layout.SLURM).is_dir()
    host_answer = ask_host(nodes_folder, "check", {}, timeout_s=_CHECK_S) if daemons else {}
    conditions = [_judge(nodes_folder, name, uid, ports.get(name), first_lines) for name in node_names]
    return [
        _make_unhealthy(health.node, str(host_answer[health.node])) if host_answer.get(health.node) else health
        for health in conditions
    ]


def ask_host(nodes_folder: Path, verb: str, document: object, *, timeout_s: float) -> dict[str, Any]:
    """Send the host of these nodes a request about its machines: `check`, `power` or `run`.

    Return its answer, or an empty dict if it does not answer. Linux only. Raises control.ControlRefused.
    """
    folder = os.open(nodes_folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Through the open folder, the path is short, however long the folder's own path is.
        at = f"/proc/self/fd/{folder}/{control.SOCKET}"
        return dict(json.loads(control.ask(verb, json.dumps(document), timeout_s=timeout_s, at=at)[1]))
    except (control.HostAbsent, control.HostStuck):
        return {}
    finally:
        os.close(folder)


def find_leftovers(nodes_folder: Path, uid: str, ports: Iterable[int]) -> list[Leftover]:
    """Return the leftovers of this stack: processes with its mark, ports at which its nodes answer, and files."""
    leftovers = [
        Leftover(kind="process", id=f"{pid} ({processes.command_of(pid)})", remove=f"kill -9 {pid}")
        for mark in _marks(uid)
        for pid in processes.list_carriers(mark)
    ]
    prefix = f"gpucourse_{_plain(uid)}_"
    for port, line in sorted(_first_lines(ports).items()):
        if line.startswith("SSH-2.0-") and prefix in line:
            leftovers.append(
                Leftover(kind="port", id=f"{_ADDRESS}:{port}", remove=f"end the process that listens: lsof -i tcp:{port}")
            )
    leftovers += [
        Leftover(kind="file", id=str(path), remove=f"rm -rf {shlex.quote(str(path))}") for path in _files(nodes_folder, uid)
    ]
    return leftovers


def end_everything(nodes_folder: Path, uid: str) -> None:
    """End every process of the stack and empty its folder, whatever state they are in."""
    for mark in _marks(uid):
        processes.end(mark)
    for path in _files(nodes_folder, uid):
        layout.remove(path)


def _marks(uid: str) -> tuple[str, str]:
    """Return the marks of the stack's processes. The first is the mark of the drivers, which could bring nodes up again."""
    return processes.marker(processes.DRIVER, uid), processes.marker(processes.STACK, uid)


def _files(nodes_folder: Path, uid: str) -> list[Path]:
    """Return the paths in the stack's folder, its folder for sockets, and the links that its runs made in other folders."""
    entries = sorted(nodes_folder.iterdir()) if nodes_folder.is_dir() else []
    return entries + [path for path in layout.list_outside(nodes_folder, uid) if os.path.lexists(path)]


def _judge(folder: Path, name: str, uid: str, port: int | None, first_lines: dict[int, str]) -> NodeHealth:
    if port is None:
        return _make_unhealthy(name, f"its description {layout.description(folder, name)} is missing or damaged")
    line = first_lines.get(port)
    if line is None:
        return _make_unhealthy(name, f"nothing answers on port {port}")
    if not line.startswith("SSH-2.0-") or not line.endswith(banner(uid, name)):
        return _make_unhealthy(name, f"something else answers on port {port}" if line else f"port {port} is open but silent")
    if not layout.home(folder, name).is_dir():
        return _make_unhealthy(name, f"its home folder {layout.home(folder, name)} is gone")
    return NodeHealth(node=name, healthy=True)


def _make_unhealthy(name: str, detail: str) -> NodeHealth:
    return NodeHealth(node=name, healthy=False, detail=detail)


def _first_lines(ports: Iterable[int]) -> dict[int, str]:
    """Return the first line that the process at each port sends, or an empty string if it sends none.

    Ports at which no process listens are left out.
    """
    lines: dict[int, str] = {}
    deadline = time.monotonic() + _PATIENCE_S
    with ExitStack() as open_lines, selectors.DefaultSelector() as selector:
        for port in ports:
            line = open_lines.enter_context(socket.socket())
            line.setblocking(False)
            line.connect_ex((_ADDRESS, port))
            selector.register(line, selectors.EVENT_READ, port)
        while selector.get_map() and (remaining_s := deadline - time.monotonic()) > 0:
            for key, _event in selector.select(remaining_s):
                selector.unregister(key.fileobj)
                text = _hear(key.fd)
                if text is not None:
                    lines[key.data] = text
        lines.update({key.data: "" for key in selector.get_map().values()})
    return lines


def _hear(handle: int) -> str | None:
    try:
        return os.read(handle, _MAX_LINE).split(b"\n")[0].decode(errors="replace").strip()
    except OSError:
        return None


def _plain(text: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text)
