"""The namespace around a stack's machines, started as `namespace.py SOCKET FOLDER`: its first process, which holds the rest.

Whatever runs on the machines descends from it, so its end is the end of every process, mount, network and name in it: the
kernel ensures that. It ends with the process that started it. SOCKET is an open socket (SOCK_SEQPACKET) that receives one
document for each request and answers each, in any order; the folder `machines` in FOLDER is where the machines' disks are
mounted.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run by path: the package is found beside the libraries, and this folder shadows none of them
    sys.path[:] = [*sys.path[1:], str(Path(__file__).parents[3])]

from gpucourse.local.machines import daemons, kernel, machine, network, reports
from gpucourse.local.machines.controller import SlurmController
from gpucourse.local.machines.userspace import become_root

_MESSAGE = 1 << 20
_SLURM = SlurmController({"PATH": daemons.PATH, "LANG": "C.UTF-8"})  # for the processes that enter the head

Document = dict[str, Any]


class MachineNamespace:
    """The machines, and the requests to change them."""

    def __init__(self, line: socket.socket, folder: str) -> None:
        self._line = line
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._machines: dict[str, Document] = {}
        self._first: dict[str, int] = {}  # the first process of each machine that is on
        self._outer: dict[int, str] = {}  # the process that waits for it, which is the namespace's child
        self._key = daemons.make_key()

    def run(self) -> None:
        """Serve until the host has gone."""
        self._selector.register(self._line, selectors.EVENT_READ, self._hear)
        woken, wakes = socket.socketpair()
        for end in (woken, wakes):
            end.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap(woken))
        while True:
            for key, _events in self._selector.select():
                key.data()

    def _hear(self) -> None:
        text = self._line.recv(_MESSAGE)
        if not text:
            os._exit(0)  # the host has gone, so none of this is needed
        asked = json.loads(text)
        try:
            getattr(self, f"_do_{asked['verb']}")(asked)
        except Exception as error:  # noqa: BLE001 (a request that fails must not take the machines down)
            self._answer(asked, {"error": str(error) or type(error).__name__})

    def _answer(self, asked: Document, answer: Document, handles: tuple[int, ...] = ()) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))] if handles else []
        self._line.sendmsg([json.dumps({"id": asked["id"], **answer}).encode()], rights)

    def _do_on(self, asked: Document) -> None:
        """Boot the machine, or repair what is missing in it."""
        name, wanted = asked["machine"]["name"], {**asked["machine"], "munge_key": self._key}
        self._machines[name] = wanted
        if name in self._first:
            self._visit(asked, name, lambda: _ensure_daemons(wanted))
        else:
            self._fork(asked, lambda tell: machine.boot(f"{self._folder}/machines/{name}", wanted, tell), boots=name)

    def _do_off(self, asked: Document) -> None:
        """Cut the power."""
        pid = self._first.pop(asked["name"], None)
        if asked.get("forget"):
            self._machines.pop(asked["name"], None)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it switched itself off just now
                os.kill(pid, signal.SIGKILL)
        self._answer(asked, {"was_on": pid is not None})

    def _do_dial(self, asked: Document) -> None:
        """Answer with a socket in the namespace's network that is connecting to a machine. The caller finds out whether it
        succeeds."""
        line = socket.socket()
        line.setblocking(False)
        line.connect_ex((asked["address"], asked["port"]))
        self._answer(asked, {}, (line.fileno(),))
        line.close()

    def _do_listen(self, asked: Document) -> None:
        """Answer with a socket that listens at a port of a machine's own 127.0.0.1. The caller serves it."""
        if asked["name"] not in self._first:
            raise ConnectionRefusedError(f"{asked['name']} is off")
        owners = (self._first[asked["name"]], "self")
        inside, outside = (os.open(f"/proc/{owner}/ns/net", os.O_RDONLY | os.O_CLOEXEC) for owner in owners)
        try:
            kernel.enter(inside)
            line = socket.create_server(("127.0.0.1", asked["port"]))
        finally:
            kernel.enter(outside)
            os.close(inside)
            os.close(outside)
        self._answer(asked, {}, (line.fileno(),))
        line.close()

    def _do_run(self, asked: Document) -> None:
        """Run a command inside a machine, as its root."""
        self._visit(asked, asked["name"], lambda: _SLURM.output(asked["argv"]))

    def _do_check(self, asked: Document) -> None:
        """Answer what is wrong with each machine, in words; empty if nothing is."""
        states = {}
        for name, wanted in self._machines.items():
            pid = self._first.get(name)
            states[name] = self._wrong_with(wanted, pid) if pid else "it is off"
        heads = [name for name, wanted in self._machines.items() if "slurmctld" in daemons.list_daemons(wanted)]
        if not heads or states[heads[0]]:
            self._answer(asked, {"found": states})
        else:
            meanings = self._meanings()
            self._visit(asked, heads[0], lambda: {"found": _SLURM.judge_nodes(states, heads[0], meanings)})

    def _wrong_with(self, wanted: Document, pid: int) -> str:
        if absent := reports.list_absent(wanted, pid):
            return reports.describe_ended_daemons(absent)
        if not wanted.get("slurm"):
            return ""
        if not reports.has_key(pid, self._key):
            return reports.OTHER_KEY
        return "" if wanted["role"] == "head" else reports.find_distrust(reports.log_of(pid, "slurmd"))

    def _do_logs(self, asked: Document) -> None:
        """Answer what the logs of each machine's daemons mean, if that is known."""
        self._answer(asked, {"found": self._meanings()})

    def _meanings(self) -> dict[str, str]:
        meanings = {}
        for name, pid in self._first.items():
            texts = (
                reports.log_of(pid, daemon) for daemon in daemons.list_daemons(self._machines[name]) if daemon in daemons.LOGS
            )
            meanings[name] = next(filter(None, map(reports.symptom, texts)), "")
        return meanings

    def _visit(self, asked: Document, name: str, action: Callable[[], Document]) -> None:
        pid = self._first.get(name)
        if pid is None:
            self._answer(asked, {"error": f"{name} is off"})
        else:
            self._fork(asked, lambda tell: machine.visit(pid, action, tell))

    def _fork(self, asked: Document, work: Callable[[Callable[[Document], None]], None], boots: str = "") -> None:
        """Do the work in a child; its last report is the answer."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _in_child(work, writing)
        os.close(writing)
        if boots:
            self._outer[child] = boots
        heard = bytearray()

        def hear() -> None:
            data = os.read(reading, _MESSAGE)
            heard.extend(data)
            *lines, rest = bytes(heard).split(b"\n")
            heard[:] = rest
            for document in map(json.loads, lines):
                if "pid" in document:
                    self._first[boots] = document["pid"]
                else:
                    self._selector.unregister(reading)
                    os.close(reading)
                    self._answer(asked, document)
                    if boots and "error" in document:
                        self._first.pop(boots, None)
                    return
            if not data:
                self._selector.unregister(reading)
                os.close(reading)
                self._answer(asked, {"error": "it ended before it was ready"})

        self._selector.register(reading, selectors.EVENT_READ, hear)

    def _reap(self, woken: socket.socket) -> None:
        woken.recv(_MESSAGE)
        while True:
            try:
                pid, _status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            name = self._outer.pop(pid, "")
            if name and name not in self._outer.values():
                self._first.pop(name, None)


def _in_child(work: Callable[[Callable[[Document], None]], None], writing: int) -> None:
    """Do the work and never return. A child's report goes to its namespace, which then waits for nothing more."""

    def tell(document: Document) -> None:
        os.write(writing, json.dumps(document).encode() + b"\n")
        if "pid" not in document:
            os.close(writing)

    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        work(tell)
    except Exception as error:  # noqa: BLE001 (whatever it is, the client waits for an answer)
        os.write(writing, json.dumps({"error": str(error) or type(error).__name__}).encode() + b"\n")
    finally:
        os._exit(0)


def _ensure_daemons(wanted: Document) -> Document:
    started = daemons.ensure(wanted)
    if wanted.get("slurm") and wanted["role"] == "head":
        _SLURM.release()
    elif wanted.get("slurm"):
        if not started and ("*" in _SLURM.state(wanted["name"]) or reports.find_distrust(reports.log_of("self", "slurmd"))):
            # All of them run, but the head and this machine do not reach each other: one of them has a fault.
            daemons.ensure(wanted, anew=("munged", "slurmd"))
        _SLURM.resume(wanted["name"])
    return {}


def main(handle: int, folder: str) -> None:
    """Create the namespace and become its first process; this process waits for it."""
    become_root()
    kernel.die_with_parent(signal.SIGKILL)
    line = socket.socket(fileno=handle)
    kernel.unshare(kernel.NEW_MACHINE | kernel.NEW_PIDS)
    first = os.fork()
    if first == 0:
        kernel.die_with_parent(signal.SIGKILL)
        kernel.keep_mounts_private()
        kernel.set_name("namespace")
        kernel.mount("proc", "/proc", "proc")
        kernel.mount("disks", f"{folder}/machines", "tmpfs", options="mode=755,size=25%")
        network.run("ip", network.bridge_lines())
        namespace = MachineNamespace(line, folder)
        line.send(b'{"id": 0}')
        namespace.run()
    line.close()
    os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
