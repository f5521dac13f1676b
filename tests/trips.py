"""How many sequential round trips a command makes: to another continent each of them costs a tenth of a second.

Every connection of the command goes through a proxy on loopback that delays both directions by half a round trip, and counts.
What is counted is the depth of the conversation with one node: what comes from the node is one deeper than the deepest that
had reached it, and what goes to the node is as deep as the deepest that had come from there. So what is sent together, or on
several channels at a time, counts once, and what waits for an answer counts one more: by this number the command's time grows
with the round trip, and no computer's load changes it. The greatest of all nodes counts, for they are asked at the same time.
A wait of one node for another is not seen, and added: where a run begins, the other nodes start after the first; before
machines of one's own are taken, the others call the first one when it listens. TCP's own handshake, one more for each
connection, no proxy can delay.
"""

from __future__ import annotations

import os
import queue
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from unittest.mock import patch

from gpucourse.cli.boundary import run_command
from gpucourse.model.node import Node
from gpucourse.remote.sockets import PacketSocket, dial
from tests.openssh import openssh_nodes
from tests.system import slurm
from tests.system.cli import Learner
from tests.system.test_hosts import format_hosts, write_known_hosts, write_script
from tests.waiting import STUCK_S, until

SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
LIMITS = {
    "deploy": 14,
    "run, first": 22,
    "run": 16,
    "cancel": 10,
    "hosts: deploy": 16,
    "hosts: deploy again": 10,
    "Slurm: deploy": 14,
    "Slurm: run, first": 22,
    "Slurm: run": 16,
    "Slurm: cancel": 10,
}
AS_WITH_ONE = (
    ("runs, one under way", "runs, twenty"),
    ("runs, one has ended", "runs, nine have ended"),
    ("logs, one under way", "logs, twenty"),
    ("destroy, one", "destroy, twenty"),
    ("hosts: destroy, one", "hosts: destroy, twenty"),
    ("Slurm: runs, one under way", "Slurm: runs, twenty"),
    ("Slurm: runs, one has ended", "Slurm: runs, nine have ended"),
    ("Slurm: logs, one under way", "Slurm: logs, twenty"),
    ("Slurm: destroy, one", "Slurm: destroy, twenty"),
)
"""Commands that take no more round trips with several runs than with one."""
MANY, MORE_THAN_CHANNELS = 20, 9
TORCH = """class Tensor:
    __eq__ = lambda self, _other: self
    all = lambda self: True
full = lambda *_, **__: Tensor()
"""
DISTRIBUTED = "init_process_group = all_reduce = destroy_process_group = lambda *_, **__: None\n"


@dataclass(frozen=True)
class Counted:
    """One command: its round trips one after the other, the most connections to one node, the seconds that it took."""

    command: str
    trips: int
    connections: int
    seconds: float

    @property
    def limit(self) -> int | None:
        """The most round trips that it may take, None where it has only to stay as it is."""
        return LIMITS.get(self.command)


@dataclass
class _Talk:
    """What passed between the command and one node: the depth of the deepest answer that came, and the deepest that was there
    when the command said its last word. An answer to that word is waited for by nobody."""

    heard: int = 0
    said: int = 0
    connections: int = 0
    sockets: list[socket.socket] = field(default_factory=list)


class Proxy:
    """Slow lines to nodes. `rtt_s`: the round trip."""

    def __init__(self, rtt_s: float) -> None:
        self._delay_s = rtt_s / 2
        self._talks: dict[tuple[str, int], _Talk] = {}
        self._readers: list[threading.Thread] = []  # of what the command says

    def hear_out(self) -> None:
        """Wait until all is read that the command said before it closed its connections."""
        for reader in self._readers:
            reader.join(STUCK_S)
            assert not reader.is_alive(), "the command left a connection open"

    @property
    def trips(self) -> int:
        """Round trips one after the other, of the node with the most of them."""
        return max((talk.said for talk in self._talks.values()), default=0)

    @property
    def connections(self) -> int:
        """Connections to one node, at most."""
        return max((talk.connections for talk in self._talks.values()), default=0)

    def dial(self, node: Node, timeout_s: float) -> PacketSocket:
        """As `sockets.dial`, over a slow line."""
        talk = self._talks.setdefault((node.address, node.port), _Talk())
        with socket.create_server(("127.0.0.1", 0)) as door:
            near = dial(replace(node, address="127.0.0.1", port=door.getsockname()[1]), timeout_s)
            middle, _ = door.accept()
        far = socket.create_connection((node.address, node.port), timeout_s)
        for sock in (middle, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(None)
        talk.connections += 1
        talk.sockets += [middle, far]
        asked = [talk.heard]
        for source, target, from_node in ((middle, far, False), (far, middle, True)):
            pieces: queue.Queue[tuple[float, int, bytes]] = queue.Queue()
            for work, sock in ((self._take, source), (self._hand_on, target)):
                thread = threading.Thread(target=work, args=(sock, pieces, talk, asked, from_node), daemon=True)
                thread.start()
                if sock is middle and not from_node:
                    self._readers.append(thread)
        return near

    def close(self) -> None:
        """End every line."""
        for talk in self._talks.values():
            for sock in talk.sockets:
                sock.close()

    def _take(self, source: socket.socket, pieces: queue.Queue[Any], talk: _Talk, asked: list[int], from_node: bool) -> None:
        data = b"more"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            if data and not from_node:
                talk.said = max(talk.said, talk.heard)
            pieces.put((time.monotonic() + self._delay_s, asked[0] + 1 if from_node else talk.heard, data))

    def _hand_on(self, target: socket.socket, pieces: queue.Queue[Any], talk: _Talk, asked: list[int], from_node: bool) -> None:
        data = b"more"
        while data:
            due, depth, data = pieces.get()
            time.sleep(max(due - time.monotonic(), 0.0))
            with suppress(OSError):
                if not data:
                    target.shutdown(socket.SHUT_WR)
                elif from_node:
                    talk.heard = max(talk.heard, depth)
                    target.sendall(data)
                else:
                    asked[0] = max(asked[0], depth)
                    target.sendall(data)


@contextmanager
def slow_lines(rtt_s: float) -> Iterator[Proxy]:
    """Every connection to a node that this process makes in the block goes over such a line."""
    proxy = Proxy(rtt_s)
    with patch("gpucourse.remote.ssh.dial", proxy.dial):
        try:
            yield proxy
        finally:
            proxy.close()


def count(command: str, rtt_s: float, *words: str, waits: int = 0) -> Counted:
    """Type one command in this process. `waits`: how often a node waits for another one."""
    with TemporaryFile("w+") as said, slow_lines(rtt_s) as proxy, redirect_stdout(said), redirect_stderr(said):
        began = time.monotonic()
        code = run_command(words)
        seconds = time.monotonic() - began
        said.seek(0)
        proxy.hear_out()
        assert code == 0, f"gpucourse {' '.join(words)} answered {code}:\n{said.read()}"
        return Counted(command, proxy.trips + waits, proxy.connections, seconds)


def count_on_simulated_nodes(folder: Path, rtt_s: float) -> Iterator[Counted]:
    """A lab of two nodes from `deploy` to `destroy`, then one of one node."""
    with _somebody(folder) as learner:
        own = ("run", "--launcher", "python", "--script")
        prints, sleeps = (write_script(learner, *file) for file in (("prints.py", "print('hello')\n"), ("sleeps.py", SLEEPS)))
        yield count("deploy", rtt_s, "deploy", "3")
        yield count("run, first", rtt_s, *own, prints, waits=1)
        yield count("run", rtt_s, *own, prints, waits=1)
        yield count("run --detach", rtt_s, *own, sleeps, "--detach", waits=1)
        yield count("runs, one under way", rtt_s, "runs")
        yield count("logs, one under way", rtt_s, "logs")
        yield count("cancel", rtt_s, "cancel")
        _detach(MANY, *own, sleeps, "--nodes", "1")  # what is counted is what passes between the command and one node
        yield count("runs, twenty", rtt_s, "runs")
        yield count("logs, twenty", rtt_s, "logs")
        yield count("destroy, twenty", rtt_s, "destroy", "3", "--yes")
        count("", 0.0, "deploy", "1")
        _detach(1, *own, prints)
        until(lambda: _count_ended(learner) == 1)
        yield count("runs, one has ended", rtt_s, "runs")
        _detach(MORE_THAN_CHANNELS, *own, prints)
        until(lambda: _count_ended(learner) == 1 + MORE_THAN_CHANNELS)
        yield count("runs, nine have ended", rtt_s, "runs")
        _detach(1, *own, sleeps)
        yield count("destroy, one", rtt_s, "destroy", "1", "--yes")


def count_on_hosts(folder: Path, rtt_s: float) -> Iterator[Counted]:
    """A lab on two machines with OpenSSH, whose torch only says that the sum is right."""
    with _somebody(folder) as learner:
        python = _make_python(folder / "python")
        learner.takes_ports(node_python=str(python))
        key = learner.workspace / ".gpucourse/keys/id_ed25519"
        with openssh_nodes(folder / "machines", 2, key) as servers:
            write_known_hosts(learner, servers)
            yield count("hosts: deploy", rtt_s, "deploy", "3", "--hosts", format_hosts(servers), waits=1)
            yield count("hosts: deploy again", rtt_s, "deploy", "3", "--target", "hosts", waits=1)
            script = write_script(learner, "prints.py", "print('hello')\n")
            yield count("hosts: run, first", rtt_s, "run", "--launcher", "python", "--script", script, waits=1)
            yield count("hosts: run", rtt_s, "run", "--launcher", "python", "--script", script, waits=1)
            sleeps = write_script(learner, "sleeps.py", SLEEPS)
            _detach(1, "run", "--launcher", "python", "--script", sleeps, "--nodes", "1")
            yield count("hosts: destroy, one", rtt_s, "destroy", "3", "--yes")
            count("", 0.0, "deploy", "3", "--hosts", format_hosts(servers))
            _detach(MANY, "run", "--launcher", "python", "--script", sleeps, "--nodes", "1")
            yield count("hosts: destroy, twenty", rtt_s, "destroy", "3", "--yes")


def count_under_slurm(folder: Path, rtt_s: float) -> Iterator[Counted]:
    """Module 2's lab, of which only the node that takes jobs is asked. Skips where Slurm is not installed."""
    slurm.need_slurm()
    with _somebody(folder) as learner:
        exercise = ("run", "2.1", "--set", "size=1", "--set")
        prints, sleeps = (write_script(learner, *file) for file in (("prints.py", "print('hello')\n"), ("sleeps.py", SLEEPS)))
        yield count("Slurm: deploy", rtt_s, "deploy", "2")
        yield count("Slurm: run, first", rtt_s, *exercise, "seconds=0.1")
        yield count("Slurm: run", rtt_s, *exercise, "seconds=0.1")
        yield count("Slurm: run --detach", rtt_s, *exercise, "seconds=600", "--detach")
        yield count("Slurm: runs, one under way", rtt_s, "runs")
        yield count("Slurm: logs, one under way", rtt_s, "logs")
        yield count("Slurm: cancel", rtt_s, "cancel")
        _detach(MANY, *slurm.OWN, sleeps)  # three begin, the others wait in the queue
        yield count("Slurm: runs, twenty", rtt_s, "runs")
        yield count("Slurm: logs, twenty", rtt_s, "logs")
        yield count("Slurm: destroy, twenty", rtt_s, "destroy", "2", "--yes")
        count("", 0.0, "deploy", "2")
        for more, command in ((1, "Slurm: runs, one has ended"), (MORE_THAN_CHANNELS, "Slurm: runs, nine have ended")):
            _detach(more, *slurm.OWN, prints)
            until(lambda: not slurm.queue(learner))
            yield count(command, rtt_s, "runs")
        _detach(1, *slurm.OWN, sleeps)
        yield count("Slurm: destroy, one", rtt_s, "destroy", "2", "--yes")


def _detach(runs: int, *words: str) -> None:
    """Start that many runs, which nobody follows."""
    for _ in range(runs):
        count("", 0.0, *words, "--detach")


def _count_ended(learner: Learner) -> int:
    """How many runs have ended on the first node."""
    return len(list(learner.workspace.glob(".gpucourse/stacks/*/nodes/node0/home/.gpucourse/jobs/*/done")))


@contextmanager
def _somebody(folder: Path) -> Iterator[Learner]:
    """A learner whose commands are typed in this process."""
    learner = Learner(folder / "workspace")
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, learner.environment))
        learner.takes_ports()
        try:
            yield learner
        finally:
            learner.types("destroy", "--all", "--yes", "--discard", code=None)


def _make_python(folder: Path) -> Path:
    """A Python whose torch imports at once and computes nothing."""
    package = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(TORCH)
    (package / "distributed.py").write_text(DISTRIBUTED)
    (folder / "bin").mkdir()
    base = Path(shutil.which(sys._base_executable) or sys.executable)  # type: ignore[attr-defined]
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    (folder / "bin" / "python").symlink_to(base)
    return folder / "bin" / "python"
