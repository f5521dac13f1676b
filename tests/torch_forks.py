"""Python processes that have torch already, for tests: its import takes a processor 1.6 s, its optimizers take as much again.

A `Fork` runs a script as `python SCRIPT ...` would, in a fork of one process that imported torch and nothing of the script.
Replaced is the start of the interpreter; the script, torch and the sockets between ranks are real. Run as a module, this file
is that one process: it forks for each request that comes through its socket, and says which of its forks have ended.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
READ_AT_IMPORT = {"OMP_NUM_THREADS": "1"}
"""Variables that libraries read once, when they are loaded: a fork cannot have others."""


class Fork:
    """A script under way, with the part of subprocess.Popen's interface that the tests of exercises use."""

    def __init__(self, words: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.args = list(words)
        self.returncode: Any = None  # as subprocess has it
        self._output = tempfile.NamedTemporaryFile(prefix="gpucourse-fork-")  # noqa: SIM115 (closed by communicate)
        self.pid = 0
        request = {"words": self.args, "folder": str(folder), "env": dict(env), "output": self._output.name}
        _server().start(self, request)

    def poll(self) -> Any:
        """The exit code, negative for a signal; None while it runs."""
        _server().look()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Wait for the end; what it printed. Raises subprocess.TimeoutExpired, after which it can be called again."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            _server().look(left)
        with self._output as file:
            return file.read().decode(errors="replace"), None

    def send_signal(self, number: int) -> None:
        """As kill(1) does; nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def can_start(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a fork is the same as a new interpreter: a plain script, and no variable that is read before torch is there."""
    plain = words[0] == sys.executable and len(words) > 1 and words[1].endswith(".py")
    return plain and "PYTHONPATH" not in env and READ_AT_IMPORT.items() <= env.items()


class _Server:
    """The process that imported torch, seen from the tests. It ends with the process that started it."""

    def __init__(self) -> None:
        self._line, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.torch_forks", str(there.fileno())],
                cwd=ROOT,
                env={**os.environ, **READ_AT_IMPORT},
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._received = b""
        self._starting: Fork | None = None
        self._running: dict[int, Fork] = {}
        atexit.register(self._end)

    def start(self, fork: Fork, request: dict[str, Any]) -> None:
        """Have it forked, and wait until it has a process id."""
        self._starting = fork
        self._line.sendall(json.dumps(request).encode() + b"\n")
        while self._starting:
            self.look(None)

    def look(self, timeout: float | None = 0) -> None:
        """Take the answers that are there; where none is, wait so long for one."""
        if not select.select([self._line], [], [], timeout)[0]:
            return
        received = self._line.recv(1 << 16)
        if not received:
            raise RuntimeError(f"the process that imports torch ended with code {self._process.wait()}")
        *lines, self._received = (self._received + received).split(b"\n")
        for line in lines:
            answer: dict[str, int] = json.loads(line)
            if "ended" in answer:
                self._running.pop(answer["ended"]).returncode = answer["code"]
            elif self._starting is not None:
                self._starting.pid = answer["started"]
                self._running[answer["started"]] = self._starting
                self._starting = None

    def _end(self) -> None:
        self._line.close()
        self._process.wait()


_servers: list[_Server] = []


def _server() -> _Server:
    if not _servers:
        _servers.append(_Server())
    return _servers[0]


def serve(line: socket.socket) -> dict[str, Any] | None:
    """Fork for each request until the other end is closed. In a fork this returns what is to be run, else None."""

    wakes, wake = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    requests = line.makefile("r", encoding="utf-8")
    while True:
        ready = select.select([line.fileno(), wakes], [], [])[0]
        if wakes in ready:
            os.read(wakes, 4096)
            _report_ended(line)
        if line.fileno() in ready:
            text = requests.readline()
            if not text:
                return None
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for inherited in (wakes, wake):
                    os.close(inherited)
                return dict(json.loads(text))
            line.sendall(json.dumps({"started": pid}).encode() + b"\n")


def _report_ended(line: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        line.sendall(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode() + b"\n")


def take_over(request: dict[str, Any]) -> None:
    """In a fork: be the process that was asked for, up to its first line."""
    output = os.open(request["output"], os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    _, script, *arguments = request["words"]
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent.absolute())


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        asked = serve(connection)
    if asked is not None:
        take_over(asked)
        runpy.run_path(sys.argv[0], run_name="__main__")
