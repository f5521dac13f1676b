"""Count the sequential round trips of `deploy`, `run` and `cancel`. To another continent, each costs a tenth of a second.

Every connection of the command goes through a proxy on loopback, which delays each direction by half a round trip and counts.

The count is the depth of the conversation with one node. Data from the node is one deeper than the deepest data that had
reached it; data to the node is as deep as the deepest data that had arrived from it. Data that is sent together, or on several
channels at the same time, therefore counts once, and data that has to wait for an answer counts one more. A command's time
grows with this number times the round trip, and the load of the computer does not change the number. The largest count of all
nodes decides, because they are queried in parallel.

The proxy cannot see that one node waits for another, so such waits are added: when a run begins, the other nodes start after
the first. It also cannot delay TCP's own handshake, which is one more round trip for each connection.
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
"""The maximum number of round trips of each command."""
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
PRINTS = "print('hello')\n"


@dataclass(frozen=True)
class Counted:
    """One command and the number of its sequential round trips."""

    command: str
    trips: int


@dataclass
class _Talk:
    """The conversation between the command and one node.

    `answer_depth`: the depth of the deepest answer that has arrived.
    `message_depth`: the depth of the deepest answer that had arrived when the command last sent something. Answers to the last
    message do not count, because the command does not wait for them.
    """

    answer_depth: int = 0
    message_depth: int = 0
    sockets: list[socket.socket] = field(default_factory=list)


class Proxy:
    """Slow connections to nodes. `rtt_s`: the round-trip time."""

    def __init__(self, rtt_s: float) -> None:
        self._delay_s = rtt_s / 2
        self._talks: dict[tuple[str, int], _Talk] = {}
        self._readers: list[threading.Thread] = []  # they read what the command sends

    def hear_out(self) -> None:
        """Wait until everything is read that the command sent before it closed its connections."""
        for reader in self._readers:
            reader.join(STUCK_S)
            assert not reader.is_alive(), "the command left a connection open"

    @property
    def trips(self) -> int:
        """Return the largest number of sequential round trips of any node."""
        return max((talk.message_depth for talk in self._talks.values()), default=0)

    def dial(self, node: Node, timeout_s: float) -> socket.socket:
        """Return a connection as `ssh.dial` does, but through the proxy."""
        talk = self._talks.setdefault((node.address, node.port), _Talk())
        with socket.create_server(("127.0.0.1", 0)) as door:
            near = dial(replace(node, address="127.0.0.1", port=door.getsockname()[1]), timeout_s)
            middle, _ = door.accept()
        far = socket.create_connection((node.address, node.port), timeout_s)
        for sock in (middle, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(None)
        talk.sockets += [middle, far]
        node_depth = [talk.answer_depth]
        for source, target, from_node in ((middle, far, False), (far, middle, True)):
            pieces: queue.Queue[tuple[float, int, bytes]] = queue.Queue()
            for work, sock in ((self._take, source), (self._hand_on, target)):
                thread = threading.Thread(target=work, args=(sock, pieces, talk, node_depth, from_node), daemon=True)
                thread.start()
                if sock is middle and not from_node:
                    self._readers.append(thread)
        return near

    def close(self) -> None:
        """Close every connection."""
        for talk in self._talks.values():
            for sock in talk.sockets:
                sock.close()

    def _take(
        self, source: socket.socket, pieces: queue.Queue[Any], talk: _Talk, node_depth: list[int], from_node: bool
    ) -> None:
        data = b"more"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            if data and not from_node:
                talk.message_depth = max(talk.message_depth, talk.answer_depth)
            pieces.put((time.monotonic() + self._delay_s, node_depth[0] + 1 if from_node else talk.answer_depth, data))

    def _hand_on(
        self, target: socket.socket, pieces: queue.Queue[Any], talk: _Talk, node_depth: list[int], from_node: bool
    ) -> None:
        data = b"more"
        while data:
            due, depth, data = pieces.get()
            time.sleep(max(due - time.monotonic(), 0.0))
            with suppress(OSError):
                if not data:
                    target.shutdown(socket.SHUT_WR)
                elif from_node:
                    talk.answer_depth = max(talk.answer_depth, depth)
                    target.sendall(data)
                else:
                    node_depth[0] = max(node_depth[0], depth)
                    target.sendall(data)


@contextmanager
def slow_lines(rtt_s: float) -> Iterator[Proxy]:
    """Send every connection to a node that this process makes in the block through a proxy."""
    proxy = Proxy(rtt_s)
    with patch("gpucourse.remote.ssh.dial", proxy.dial):
        try:
            yield proxy
        finally:
            proxy.close()


def count(command: str, rtt_s: float, *words: str, waits: int = 0) -> Counted:
    """Return the round trips of one command, which is typed in this process. `waits`: how often one node waits for another."""
    with tempfile.TemporaryFile("w+") as output, slow_lines(rtt_s) as proxy, redirect_stdout(output), redirect_stderr(output):
        code = run_command(words)
        output.seek(0)
        proxy.hear_out()
        assert code == 0, f"gpucourse {' '.join(words)} ended with code {code}:\n{output.read()}"
        return Counted(command, proxy.trips + waits)


def count_on_simulated_nodes(folder: Path, rtt_s: float) -> Iterator[Counted]:
    """Count `deploy`, `run` and `cancel` on a lab of two nodes. An uncounted run comes first, so that its files are already on
    the nodes.
    """
    with _typing_learner(folder) as learner:
        run_words = ("run", "--launcher", "python", "--script")
        prints, sleeps = (write_script(learner, *file) for file in (("prints.py", PRINTS), ("sleeps.py", SLEEPS)))
        yield count("deploy", rtt_s, "deploy", "3")
        count("", 0.0, *run_words, prints)
        yield count("run", rtt_s, *run_words, prints, waits=1)
        count("", 0.0, *run_words, sleeps, "--detach")
        yield count("cancel", rtt_s, "cancel", "latest")


@contextmanager
def _typing_learner(folder: Path) -> Iterator[Learner]:
    """Yield a learner whose commands run in this process."""
    learner = Learner(folder / "workspace")
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, learner.environment))
        learner.takes_ports()
        try:
            yield learner
        finally:
            with suppress(AssertionError):  # the error that ended the block is more useful
                count("", 0.0, "destroy", "--all", "--yes", "--discard")


def measure() -> Iterator[Row]:
    """Yield each command on a lab of two simulated nodes."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        for counted in count_on_simulated_nodes(Path(folder), RTT_S):
            limit = LIMITS[counted.command]
            yield Row(what=f"{counted.command}, 2 nodes, round trips", ours=counted.trips, unit="trips", limit=limit)
