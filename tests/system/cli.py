"""The command line as a person uses it: a process of its own, in a workspace of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forks
from tests.documents import read_document
from tests.forks import SHARED
from tests.ports import take_ports
from tests.waiting import STUCK_S, until

COMMAND = (sys.executable, "-m", "gpucourse")


@dataclass(frozen=True)
class Typed:
    """What a command answered."""

    code: int
    out: str
    err: str
    words: tuple[str, ...] = ()

    @property
    def document(self) -> Any:
        """Its JSON document, which is as its schema says."""
        return read_document(self.words, self.out)


@dataclass
class Learner:
    """Somebody with a workspace. `before`: what is before every command that is run to its end."""

    workspace: Path
    environ: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def environment(self) -> dict[str, str]:
        """A clean environment: nothing of whoever runs the tests."""
        home = self.workspace.parent / "home"
        home.mkdir(exist_ok=True)
        variables = {name: os.environ[name] for name in ("PATH", "LANG", "TF_PLUGIN_MIRROR", "TMPDIR") if name in os.environ}
        if SHARED in os.environ:  # fonts are looked for once, not by every learner
            variables["MPLCONFIGDIR"] = str(Path(os.environ[SHARED]) / "matplotlib")
        return {**variables, "HOME": str(home), "GPUCOURSE_WORKSPACE": str(self.workspace), **self.environ}

    def types(self, *words: str, code: int | None = 0, timeout: float = STUCK_S, **environ: str) -> Typed:
        """Run a command to its end; fails unless it answers `code` (None: whatever)."""
        command = [*self.before, *COMMAND, *words]
        result = Typed(*_run(command, self.environment | environ, timeout), words)
        assert code is None or result.code == code, (
            f"gpucourse {' '.join(words)} answered {result.code}:\n{result.out}\n{result.err}{self.describe_surroundings()}"
        )
        return result

    def describe_surroundings(self) -> str:
        """Return what else explains an answer that was not expected."""
        return ""

    def takes_ports(self, **settings: str) -> None:
        """Write settings, among them one by which its ranks meet at ports that no other test uses. Labs do not know of each
        other, and of two that begin a run at the same moment both may choose the same port."""
        ports = take_ports(4)
        self.workspace.mkdir(parents=True, exist_ok=True)
        settings = {"rendezvous_ports": f"{ports[0]}-{ports[-1]}", **settings}
        (self.workspace / "gpucourse.yaml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML

    @contextmanager
    def leaves_nothing(self) -> Iterator[Learner]:
        """After the block no lab and no process is left, however far a `deploy` in it came."""
        try:
            yield self
        finally:
            self.types("destroy", "--all", "--yes", "--discard", "--quiet")
            assert self.processes() == []

    def begins(self, *words: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own, with Ctrl-C working as in a terminal."""
        return subprocess.Popen(
            [*COMMAND, *words],
            env=self.environment | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,  # noqa: PLW1509
        )

    def documents(self, *words: str) -> Any:
        """Return the JSON document of a command."""
        return self.types(*words, "--json").document

    def newest_run(self) -> dict[str, Any]:
        """Return the record of the newest run, from disk."""
        return dict(json.loads((self.run_folder() / "run.json").read_text()))

    def run_folder(self) -> Path:
        """Return the folder of the newest run, of an exercise or of a script."""
        return max(self.list_records(), key=lambda path: path.stat().st_mtime).parent

    def list_records(self) -> list[Path]:
        """Return the records of all runs. `**` would read folders below them as well, which come and go while a run is under
        way."""
        return [path for place in ("*", "scripts/*") for path in self.workspace.glob(f"runs/{place}/*/run.json")]

    def stack_folder(self) -> Path:
        """Return the folder of module 3's stack."""
        return self.workspace / ".gpucourse" / "stacks" / "03-local"

    def host_pid(self) -> int:
        """Return the process that hosts the simulated nodes."""
        return int(json.loads((self.stack_folder() / "nodes" / "host.json").read_text())["pid"])

    def processes(self) -> list[int]:
        """Every live process that belongs to this workspace's nodes or runs, found by its environment."""
        identity = self.workspace / ".gpucourse/workspace.json"
        if not identity.is_file():
            return []
        marks = (
            b"GPUCOURSE_RUN_DIR=" + str(self.workspace).encode(),
            b"HOME=" + str(self.workspace).encode(),
            b"GPUCOURSE_STACK_UID=" + json.loads(identity.read_text())["id"].encode(),
        )
        return [pid for pid, variables in list_environments() if any(variable.startswith(marks) for variable in variables)]

    def check_nothing_runs(self) -> None:
        """No launcher and no rank of a run is alive; a supervisor, which tells of the end before it ends itself, ends."""
        path = str(self.workspace).encode()
        assert list_marked(b"GPUCOURSE_RUN_DIR=" + path) == []
        until(lambda: not list_marked(b"GPUCOURSE_RUN_DIR=supervisor", b"HOME=" + path), subject="the end of the supervisors")


def list_marked(*marks: bytes) -> list[int]:
    """Return the live processes that have, for each mark, a variable that starts with it."""
    alive = list_environments()
    return [pid for pid, variables in alive if all(any(variable.startswith(mark) for variable in variables) for mark in marks)]


def list_environments() -> list[tuple[int, list[bytes]]]:
    """Every live process but this one, with the variables that it was started with."""
    alive = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                zombie = b") Z" in (entry / "stat").read_bytes()
            except OSError:  # it ended, or it is somebody else's
                continue
            if not zombie:
                alive.append((int(entry.name), variables))
    return alive


def _run(command: list[str], env: dict[str, str], timeout: float) -> tuple[int, str, str]:
    """Run a command to its end, by a fork where that is the same: its exit code, its standard output and standard error."""
    if not forks.can_start(command, env):
        result = subprocess.run(command, env=env, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False)
        return result.returncode, result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")
    return finish(forks.Fork(command, Path.cwd(), env, has_own_stderr=True), timeout)


def finish(fork: forks.Fork, timeout: float) -> tuple[int, str, str]:
    """Wait for the end of a fork that keeps its outputs apart: its exit code, its standard output and standard error. Past its
    time it is killed, and subprocess.TimeoutExpired raised."""
    try:
        out, err = fork.communicate(timeout)
    except subprocess.TimeoutExpired:
        fork.kill()
        fork.communicate()
        raise
    return fork.returncode, out, err or ""


def wait_for_words(process: subprocess.Popen[bytes], words: bytes) -> str:
    """Wait until a line of what the process says on its standard error holds these words; the line."""
    stream = process.stderr
    assert stream is not None
    deadline, output = time.monotonic() + STUCK_S, b""
    while words not in (line := stream.readline()):
        output += line
        text = f"{words!r} did not come onto the screen within {STUCK_S:.0f} s, but:\n{output.decode(errors='replace')}"
        assert line, f"the command ended: {text}"
        assert time.monotonic() < deadline, text
    return line.decode(errors="replace")
