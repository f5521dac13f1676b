"""The command line as a person uses it: each command is a separate process, in a workspace of its own."""

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

import pytest

from tests import forks
from tests.documents import read_document
from tests.forks import SHARED
from tests.ports import take_ports
from tests.waiting import STUCK_S, until

COMMAND = (sys.executable, "-m", "gpucourse")


@dataclass(frozen=True)
class Typed:
    """The result of a typed command."""

    code: int
    out: str
    err: str
    words: tuple[str, ...] = ()

    @property
    def document(self) -> Any:
        """Return its JSON document, which must match its schema."""
        return read_document(self.words, self.out)


@dataclass
class Learner:
    """A learner with a workspace. `before`: words before every command that is run to its end."""

    workspace: Path
    environ: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def environment(self) -> dict[str, str]:
        """Return a clean environment, without the settings of the user who runs the tests."""
        home = self.workspace.parent / "home"
        home.mkdir(exist_ok=True)
        variables = {name: os.environ[name] for name in ("PATH", "LANG", "TF_PLUGIN_MIRROR", "TMPDIR") if name in os.environ}
        if SHARED in os.environ:  # fonts are looked for once, not by every learner
            variables["MPLCONFIGDIR"] = str(Path(os.environ[SHARED]) / "cache" / "matplotlib")
        return {**variables, "HOME": str(home), "GPUCOURSE_WORKSPACE": str(self.workspace), **self.environ}

    def types(self, *words: str, code: int | None = 0, timeout: float = STUCK_S, **environ: str) -> Typed:
        """Run a command to its end. Fail unless it ends with `code` (None: any code)."""
        command = [*self.before, *COMMAND, *words]
        result = Typed(*_run(command, self.environment | environ, timeout), words)
        assert code is None or result.code == code, (
            f"gpucourse {' '.join(words)} answered {result.code}:\n{result.out}\n{result.err}{self.describe_surroundings()}"
        )
        return result

    def describe_surroundings(self) -> str:
        """Return further facts that may explain an unexpected result."""
        return ""

    def takes_ports(self, **settings: str) -> None:
        """Write settings, including one by which the ranks meet at ports that no other test uses.

        Labs do not know of each other. Two labs that start a run at the same moment might otherwise choose the same port.
        """
        ports = take_ports(4)
        self.workspace.mkdir(parents=True, exist_ok=True)
        settings = {"rendezvous_ports": f"{ports[0]}-{ports[-1]}", **settings}
        (self.workspace / "gpucourse.yaml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML

    @contextmanager
    def leaves_nothing(self) -> Iterator[Learner]:
        """Destroy all labs after the block, so that no process is left, however far a `deploy` in the block got."""
        try:
            yield self
        finally:
            self.types("destroy", "--all", "--yes", "--discard", "--quiet")
            assert self.processes() == []

    def begins(self, *words: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start a command in its own session, in which Ctrl-C works."""
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
        """Return the record of the newest run from disk."""
        return dict(json.loads((self.run_folder() / "run.json").read_text()))

    def run_folder(self) -> Path:
        """Return the folder of the newest run, of an exercise or of a script."""
        return max(self.list_records(), key=lambda path: path.stat().st_mtime).parent

    def list_records(self) -> list[Path]:
        """Return the records of all runs. The pattern `**` would also read the folders below them, which may change during a
        run.
        """
        return [path for place in ("*", "scripts/*") for path in self.workspace.glob(f"runs/{place}/*/run.json")]

    def stack_folder(self) -> Path:
        """Return the folder of module 3's stack."""
        return self.workspace / ".gpucourse" / "stacks" / "03-local"

    def host_pid(self) -> int:
        """Return the process that hosts the simulated nodes."""
        return int(json.loads((self.stack_folder() / "nodes" / "host.json").read_text())["pid"])

    def processes(self) -> list[int]:
        """Return every live process that belongs to this workspace's nodes or runs, according to its environment."""
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
        """Check that no launcher and no rank of a run is alive, and wait for the supervisors, which report the end before they
        end themselves.
        """
        path = str(self.workspace).encode()
        assert list_marked(b"GPUCOURSE_RUN_DIR=" + path) == []
        until(lambda: not list_marked(b"GPUCOURSE_RUN_DIR=supervisor", b"HOME=" + path), subject="the end of the supervisors")


def list_marked(*marks: bytes) -> list[int]:
    """Return the live processes that have, for each mark, a variable that starts with it."""
    alive = list_environments()
    return [pid for pid, variables in alive if all(any(variable.startswith(mark) for variable in variables) for mark in marks)]


def list_environments() -> list[tuple[int, list[bytes]]]:
    """Return every live process except this one, with the variables that it was started with."""
    alive = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                zombie = b") Z" in (entry / "stat").read_bytes()
            except OSError:  # it has ended, or belongs to another user
                continue
            if not zombie:
                alive.append((int(entry.name), variables))
    return alive


def _run(command: list[str], env: dict[str, str], timeout: float) -> tuple[int, str, str]:
    """Run a command to its end, by a fork if that makes no difference. Return its exit code, standard output and standard
    error.
    """
    if forks.can_start(command, env):
        return finish(forks.Fork(command, Path.cwd(), env, has_own_stderr=True), timeout)
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    return finish(process, timeout)


def finish(process: forks.Fork | subprocess.Popen[str], timeout: float) -> tuple[int, str, str]:
    """Wait for the end of a process with separate outputs. Return its exit code, standard output and standard error. When the
    time is over, kill the process, and fail with its outputs and the processes below it. A fork also prints where it is.
    """
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        descendants = forks.describe_descendants(process.pid)
        if isinstance(process, forks.Fork):
            process.print_stacks()
        process.kill()
        try:
            out, err = process.communicate(timeout=forks.ENDING_S)
        except subprocess.TimeoutExpired:
            out, err = "", "(a process below it keeps its outputs open)"
        words = " ".join(map(str, process.args))  # type: ignore[arg-type]  # always a list here
        pytest.fail(
            f"{words}\ndid not end within {timeout:.0f} s. Processes below it:\n{descendants}\nIts output:\n{out}\n{err}",
            pytrace=False,
        )
    return process.returncode, out, err or ""


def wait_for_words(process: subprocess.Popen[bytes], words: bytes) -> str:
    """Wait until a line on the process's standard error contains these words, and return the line."""
    stream = process.stderr
    assert stream is not None
    deadline, output = time.monotonic() + STUCK_S, b""
    while words not in (line := stream.readline()):
        output += line
        text = f"{words!r} did not come onto the screen within {STUCK_S:.0f} s, but:\n{output.decode(errors='replace')}"
        assert line, f"the command ended: {text}"
        assert time.monotonic() < deadline, text
    return line.decode(errors="replace")
