"""Round trips of `deploy`, `run` and `cancel`, one after the other: from another continent each costs a tenth of a second.

Every connection of the command goes through a proxy on loopback that delays both directions by half a round trip, and counts.
What is counted is the depth of the conversation with one node: what comes from the node is one deeper than the deepest that
had reached it, and what goes to the node is as deep as the deepest that had come from there. So what is sent together, or on
several channels at a time, counts once, and what waits for an answer counts one more: by this number the command's time grows
with the round trip, and no computer's load changes it. The greatest of all nodes counts, for they are asked at the same time.
A wait of one node for another is not seen, and added: when a run begins, the other nodes start after the first. TCP's own
handshake, one more for each connection, no proxy can delay.
"""

from __future__ import annotations

import os
import queue
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.measure import Row
from gpucourse.cli.boundary import run_command
from gpucourse.model.node import Node
from gpucourse.remote.ssh import dial
from tests.system.cli import Learner
from tests.system.test_hosts import write_script
from tests.waiting import STUCK_S

RTT_S = 0.2
LIMITS = {"deploy": 14, "run": 16, "cancel": 10}
"""The most round trips that a command may take."""
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
PRINTS = "print('hello')\n"


@dataclass(frozen=True)
class Counted:
    """One command, and its round trips one after the other."""

    command: str
    trips: int


@dataclass
class _Talk:
    """What passed between the command and one node: the depth of the deepest answer that came, and the deepest that was there
    when the command said its last word. An answer to that word is waited for by nobody."""

    heard: int = 0
    said: int = 0
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

    def dial(self, node: Node, timeout_s: float) -> socket.socket:
        """As `dial.dial`, over a slow line."""
        talk = self._talks.setdefault((node.address, node.port), _Talk())
        with socket.create_server(("127.0.0.1", 0)) as door:
            near = dial(replace(node, address="127.0.0.1", port=door.getsockname()[1]), timeout_s)
            middle, _ = door.accept()
        far = socket.create_connection((node.address, node.port), timeout_s)
        for sock in (middle, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(None)
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
    with tempfile.TemporaryFile("w+") as said, slow_lines(rtt_s) as proxy, redirect_stdout(said), redirect_stderr(said):
        code = run_command(words)
        said.seek(0)
        proxy.hear_out()
        assert code == 0, f"gpucourse {' '.join(words)} answered {code}:\n{said.read()}"
        return Counted(command, proxy.trips + waits)


def count_on_simulated_nodes(folder: Path, rtt_s: float) -> Iterator[Counted]:
    """Count `deploy`, `run` and `cancel` on a lab of two nodes; the first run brings files that the second finds there."""
    with _typing_learner(folder) as learner:
        own = ("run", "--launcher", "python", "--script")
        prints, sleeps = (write_script(learner, *file) for file in (("prints.py", PRINTS), ("sleeps.py", SLEEPS)))
        yield count("deploy", rtt_s, "deploy", "3")
        count("", 0.0, *own, prints)
        yield count("run", rtt_s, *own, prints, waits=1)
        count("", 0.0, *own, sleeps, "--detach")
        yield count("cancel", rtt_s, "cancel", "latest")


@contextmanager
def _typing_learner(folder: Path) -> Iterator[Learner]:
    """Yield a learner whose commands are typed in this process."""
    learner = Learner(folder / "workspace")
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, learner.environment))
        learner.takes_ports()
        try:
            yield learner
        finally:
            with suppress(AssertionError):  # the reason that ended the block says more
                count("", 0.0, "destroy", "--all", "--yes", "--discard")


def measure() -> Iterator[Row]:
    """Yield each command on a lab of two simulated nodes."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        for counted in count_on_simulated_nodes(Path(folder), RTT_S):
            limit = LIMITS[counted.command]
            yield Row(what=f"{counted.command}, 2 nodes, round trips", ours=counted.trips, unit="trips", limit=limit)
