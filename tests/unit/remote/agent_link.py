"""Links to nodes that are this computer with other home folders, in which the real agent answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.remote.exchange import EndedEarly
from tests.unit.remote.test_host_probe import HEAD, LocalLink

END = {"code": 0, "reason": "exited", "seconds": 1.5, "killed": 0, "at": 1.0}


class AgentLink(LocalLink):
    """A link that records the requested verbs."""

    def __init__(self, home: Path, node: Node = HEAD) -> None:
        super().__init__(home)
        self.node = node
        self.asked: list[str] = []

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> CommandResult:
        self.asked.append(verb_of(command))
        assert timeout_s
        result = self._do(command, stdin if isinstance(stdin, bytes) else b"".join(stdin))
        return CommandResult(code=result.returncode, stdout=result.stdout, stderr=result.stderr)

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        assert silence_s
        self.asked.append(verb_of(command))
        result = self._do(command, stdin)
        yield self._give(result.stdout, result.returncode, result.stderr)

    def _do(self, command: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        self._home.mkdir(parents=True, exist_ok=True)
        environment = {"HOME": str(self._home), "PATH": f"{self._home}/bin:/usr/bin:/bin"}
        return subprocess.run(
            ["sh", "-c", command], input=stdin, capture_output=True, env=environment, cwd=self._home, check=False
        )

    def _give(self, data: bytes, code: int, stderr: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), 1000):
            yield data[at : at + 1000]
        if code:
            raise EndedEarly(self.node.label, code, stderr)


class AgentNodes:
    """A transport to nodes, each with its own folder below `root`. It records the links that it makes."""

    def __init__(self, root: Path) -> None:
        self.root, self.links = root, list[AgentLink]()

    def home(self, node: str) -> Path:
        return self.root / node

    def connect(self, node: Node, *, timeout_s: float = 10.0, shared: str = "") -> AgentLink:
        assert timeout_s
        link = AgentLink(self.home(node.name), node)
        self.links.append(link)
        return link

    def list_verbs(self, node: str) -> list[str]:
        """Return the verbs that a node was asked, in their order."""
        return [verb for link in self.links if link.node.name == node for verb in link.asked if verb not in {"", "install"}]


def make_nodes(count: int) -> tuple[Node, ...]:
    """Return nodes whose agent runs with this Python."""
    return tuple(replace(HEAD, name=f"node{number}", role="worker" if number else "head") for number in range(count))


def make_ended_job(home: Path, run_id: str, log: bytes, outputs: dict[str, bytes]) -> Path:
    """Return a run of one rank that has ended on a node."""
    job = home / ".gpucourse" / "jobs" / run_id
    for folder in ("logs", "ranks", "outputs", "work"):
        (job / folder).mkdir(parents=True)
    (job / "logs" / "launcher.log").write_bytes(b"")
    (job / "logs" / "rank0.log").write_bytes(log)
    (job / "ranks" / "0.json").write_text(json.dumps({"code": 0, "at": 1.0}))
    for name, content in outputs.items():
        (job / "outputs" / name).write_bytes(content)
    (job / "exit.json").write_text(json.dumps(END))
    for name in ("job.json", "done"):
        (job / name).write_text("{}")
    return job


def verb_of(command: str) -> str:
    return command.rpartition("agent-")[2].split()[1].rstrip(";") if '"$HOME"/.gpucourse/agent-' in command else "install"
