"""The first process of the namespace around a stack's machines, started as `namespace.py SOCKET FOLDER`.

Every process on the machines descends from this process, which ends with the process that started it. Then the kernel removes
every process, mount, network and name in the namespace.

SOCKET is the descriptor of a socket (SOCK_SEQPACKET). Each request and each answer on it is one JSON document; answers may
arrive in any order. The machines' disks are mounted in the folder `machines` of FOLDER.
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

if __name__ == "__main__":  # run by path: the package is found like the libraries, and this folder shadows none of them
    sys.path[:] = [*sys.path[1:], str(Path(__file__).parents[3])]

from gpucourse.local.machines import daemons, kernel, machine, network, reports
from gpucourse.local.machines.reports import SlurmController
from gpucourse.local.machines.userspace import become_root

_MESSAGE = 1 << 20
_SLURM = SlurmController({"PATH": daemons.PATH, "LANG": "C.UTF-8"})  # for the processes that enter the head

Document = dict[str, Any]


class MachineNamespace:
    """The machines in the namespace. The host's requests change them."""

    def __init__(self, line: socket.socket, folder: str) -> None:
        self._line = line
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._machines: dict[str, Document] = {}
        self._first: dict[str, int] = {}  # the first process of each machine that is on
        self._outer: dict[int, str] = {}  # the process that waits for it, which is the namespace's child
        self._key = daemons.make_key()

    def run(self) -> None:
        """Serve requests until the host has ended."""
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
        request = json.loads(text)
        try:
            getattr(self, f"_do_{request['verb']}")(request)
        except Exception as error:  # noqa: BLE001 (a request that fails must not take the machines down)
            self._answer(request, {"error": str(error) or type(error).__name__})

    def _answer(self, request: Document, answer: Document, handles: tuple[int, ...] = ()) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))] if handles else []
        self._line.sendmsg([json.dumps({"id": request["id"], **answer}).encode()], rights)

    def _do_on(self, request: Document) -> None:
        """Boot the machine or, if it is on, start the daemons that are not running."""
        name, spec = request["machine"]["name"], {**request["machine"], "munge_key": self._key}
        self._machines[name] = spec
        if name in self._first:
            self._visit(request, name, lambda: _ensure_daemons(spec))
        else:
            self._fork(request, lambda tell: machine.boot(f"{self._folder}/machines/{name}", spec, tell), boots=name)

    def _do_off(self, request: Document) -> None:
        """Cut a machine's power. With `forget`, remove the machine from the list of machines."""
        pid = self._first.pop(request["name"], None)
        if request.get("forget"):
            self._machines.pop(request["name"], None)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it switched itself off just now
                os.kill(pid, signal.SIGKILL)
        self._answer(request, {"was_on": pid is not None})

    def _do_socket(self, request: Document) -> None:
        """Answer with a new socket in a machine's network or, without a name, in the network around the machines."""
        name = request["name"]
        if name and name not in self._first:
            raise ConnectionRefusedError(f"{name} is off")
        owners = (self._first[name] if name else "self", "self")
        machine_network, host_network = (os.open(f"/proc/{owner}/ns/net", os.O_RDONLY | os.O_CLOEXEC) for owner in owners)
        try:
            kernel.enter(machine_network)
            with socket.socket() as line:
                self._answer(request, {}, (line.fileno(),))
        finally:
            kernel.enter(host_network)
            os.close(machine_network)
            os.close(host_network)

    def _do_run(self, request: Document) -> None:
        """Run a command inside a machine, as its root user."""
        self._visit(request, request["name"], lambda: _SLURM.output(request["argv"]))

    def _do_check(self, request: Document) -> None:
        """Answer with a description of what is wrong with each machine. The description is empty for a healthy machine."""
        states = {}
        for name, spec in self._machines.items():
            pid = self._first.get(name)
            states[name] = self._find_fault(spec, pid) if pid else "it is off"
        heads = [name for name, spec in self._machines.items() if "slurmctld" in daemons.list_daemons(spec)]
        if not heads or states[heads[0]]:
            self._answer(request, {"found": states})
        else:
            meanings = {name: reports.find_symptom(self._list_logs(name, pid)) for name, pid in self._first.items()}
            self._visit(request, heads[0], lambda: {"found": _SLURM.judge_nodes(states, heads[0], meanings)})

    def _find_fault(self, spec: Document, pid: int) -> str:
        if absent := reports.list_absent(spec, pid):
            return reports.describe_ended_daemons(absent)
        if not spec.get("slurm"):
            return ""
        if not reports.has_key(pid, self._key):
            return reports.OTHER_KEY
        return "" if spec["role"] == "head" else reports.find_distrust(pid)

    def _list_logs(self, name: str, pid: int) -> list[Path]:
        names = daemons.list_daemons(self._machines[name])
        return [reports.log_of(pid, daemon) for daemon in names if daemon in daemons.LOGS]

    def _visit(self, request: Document, name: str, action: Callable[[], Document]) -> None:
        pid = self._first.get(name)
        if pid is None:
            self._answer(request, {"error": f"{name} is off"})
        else:
            self._fork(request, lambda tell: machine.visit(pid, action, tell))

    def _fork(self, request: Document, work: Callable[[Callable[[Document], None]], None], boots: str = "") -> None:
        """Do the work in a child process. The child's last report is the answer to the request."""
        reports_in, reports_out = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.fork()
        if child == 0:
            _work_in_child(work, reports_out)
        reports_out.close()
        if boots:
            self._outer[child] = boots

        def hear() -> None:
            text = reports_in.recv(_MESSAGE)
            document: Document = json.loads(text) if text else {"error": "it ended before it was ready"}
            if "pid" in document:
                self._first[boots] = document["pid"]
                return
            self._selector.unregister(reports_in)
            reports_in.close()
            self._answer(request, document)
            if boots and "error" in document:
                self._first.pop(boots, None)

        self._selector.register(reports_in, selectors.EVENT_READ, hear)

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


def _work_in_child(work: Callable[[Callable[[Document], None]], None], reports_out: socket.socket) -> None:
    """Do the work and never return. The namespace receives this child's reports, and expects no more after a report without
    `pid`."""

    def tell(document: Document) -> None:
        reports_out.send(json.dumps(document).encode())
        if "pid" not in document:
            reports_out.close()

    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        work(tell)
    except Exception as error:  # noqa: BLE001 (whatever it is, the client waits for an answer)
        tell({"error": str(error) or type(error).__name__})
    finally:
        os._exit(0)


def _ensure_daemons(spec: Document) -> Document:
    has_started = daemons.ensure(spec)
    if spec.get("slurm") and spec["role"] == "head":
        _SLURM.release()
    elif spec.get("slurm"):
        if not has_started and ("*" in _SLURM.state(spec["name"]) or reports.find_distrust("self")):
            # All daemons run, but the head and this machine do not reach each other: a daemon here has a fault.
            daemons.ensure(spec, restarts=("munged", "slurmd"))
        _SLURM.resume(spec["name"])
    return {}


def main(handle: int, folder: str) -> None:
    """Create the namespace, start its first process, and wait for that process to end."""
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
