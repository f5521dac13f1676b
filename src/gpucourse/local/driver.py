"""What Terraform runs for a node: `driver.py up FILE`, `driver.py down FILE`, with the node's description in the environment.

`up` leaves the node answering and writes FILE last; typed again it heals what is broken. `down` works from any half-built
state, and the last one leaves the folder empty. Run by path with `python -I -S`: 64 of these start at once, so each imports
only what it needs, and the process that hosts the nodes is started by whichever comes first.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":  # run by path, outside any package; at the end, where it can hide nothing
    sys.path.append(str(Path(__file__).parents[2]))

from gpucourse.local import control, hostlock, layout, processes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_ADD_S, _REMOVE_S, _START_S, _GIVE_UP_S = 10.0, 15.0, 30.0, 60.0
_POLL_S = 0.02


class Failed(Exception):
    """The node could not be brought up or taken down; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """`up FILE` or `down FILE`. What went wrong goes to the standard error stream, which Terraform shows."""
    try:
        verb, file = arguments
        action = {"up": up, "down": down}[verb]
        spec = json.loads(os.environ[layout.SPEC_VARIABLE])
    except (KeyError, ValueError):
        sys.stderr.write(f"usage: {layout.SPEC_VARIABLE}='{{...}}' driver.py up|down FILE\n")
        return 2
    try:
        action(Path(file), spec)
    except (Failed, control.Refused, OSError) as error:
        sys.stderr.write(f"{spec.get('name', file)}: {error}\n")
        return 1
    return 0


def up(file: Path, spec: dict[str, Any]) -> None:
    """Have the node of `spec` hosted, and write what Terraform reads about it to `file`. Raises Failed, Refused, OSError."""
    folder = file.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    os.chdir(folder)
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        try:
            answer = control.ask({"do": "add", "uid": spec["uid"], "spec": spec}, timeout_s=_ADD_S)
        except control.NobodyAnswers:
            lock = hostlock.take(folder)
            if lock is None:
                time.sleep(_POLL_S)  # another driver is starting it, or the old one is about to end
            else:
                _start_host(folder, lock, spec["uid"])
        except control.HostStuck:
            _end_stuck_host(folder)
        else:
            if "node" in answer:
                layout.write_json(file, answer["node"])
                return
            time.sleep(_POLL_S)  # the host of an earlier stack: it has begun to end itself
    raise Failed(f"no process hosts the nodes of {folder} after {_GIVE_UP_S:.0f} s; see {folder / layout.LOG}")


def down(file: Path, spec: dict[str, Any]) -> None:
    """End every process of the node and remove its files; with the last node, also the host and its files. Raises Failed."""
    folder, name = file.parent, file.stem
    if not folder.is_dir():
        _end_processes(spec["uid"], name)
        return
    os.chdir(folder)
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        try:
            answer = control.ask({"do": "remove", "uid": spec["uid"], "name": name}, timeout_s=_REMOVE_S)
            if not answer["last"]:
                return
        except control.NobodyAnswers:
            pass  # there is none, or it is on its way in or out: the lock tells
        except control.HostStuck:
            _end_stuck_host(folder)
        lock = hostlock.take(folder, wait_s=0.2)
        if lock is not None:
            _remove_by_hand(folder, name, spec["uid"])
            os.close(lock)
            return
    raise Failed(f"the process that hosts the nodes of {folder} does not let go; see {folder / layout.LOG}")


def _remove_by_hand(folder: Path, name: str, uid: str) -> None:
    """Without a host, under its lock."""
    _end_processes(uid, name)
    layout.remove_node_files(folder, name)
    if layout.node_names(folder):
        return
    processes.end(processes.marker(processes.STACK, uid))
    for left in layout.HOST_FILES:
        (folder / left).unlink(missing_ok=True)


def _end_processes(uid: str, name: str) -> None:
    _ended, left = processes.end(processes.marker(processes.NODE, f"{uid}/{name}"))
    if left:
        raise Failed(f"processes {', '.join(map(str, left))} do not end")


def _end_stuck_host(folder: Path) -> None:
    """A host that does not answer (stopped, or hung) gives way to a new one."""
    known = layout.read_json(folder / layout.HOST) or {}
    pid = known.get("pid")
    if isinstance(pid, int) and processes.carries(pid, processes.marker(processes.STACK, str(known.get("uid")))):
        processes.send(pid, 9)


def _start_host(folder: Path, lock: int, uid: str) -> None:
    """Start the process that hosts the nodes, hand it the lock, and wait until it listens. Raises Failed."""
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCOURSE_", "TF_"))}
    environment[processes.STACK] = uid
    host = Path(__file__).with_name("host.py")
    ready, told = os.pipe()
    log = os.open(folder / layout.LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        subprocess.Popen(
            [sys.executable, str(host), str(lock), str(told)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock, told),
            start_new_session=True,
        )
        os.close(told)
        told = -1
        if not _says_ready(ready):
            raise Failed(f"the process that hosts the simulated nodes did not start: {_last_words(folder / layout.LOG)}")
    finally:
        for handle in (ready, log, lock, *([told] if told >= 0 else [])):
            os.close(handle)


def _says_ready(ready: int) -> bool:
    import select

    readable, _, _ = select.select([ready], [], [], _START_S)
    return bool(readable) and os.read(ready, 1) == b"\n"


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[-1]} (the whole story: {log})" if lines else f"it said nothing in {log}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
