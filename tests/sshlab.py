"""Nodes of either kind to test against (simulated nodes and real OpenSSH servers), and a connection that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gpucourse.local import layout
from gpucourse.model.node import Node
from gpucourse.remote.keys import ensure_client_key
from tests.openssh import openssh_nodes
from tests.simulated import start_simulated_nodes
from tests.waiting import STUCK_S

KINDS = ("simulated", "openssh")
on_openssh = pytest.mark.parametrize("lab", ["openssh"], indirect=True)
"""A mark for those tests of a file that use real OpenSSH servers. The others use simulated nodes."""


@dataclass
class SshLab:
    """Some nodes, their home folders by name, and the key that they accept."""

    kind: str
    nodes: list[Node]
    homes: dict[str, Path]
    key: Path


@contextmanager
def ssh_lab(kind: str, folder: Path, count: int) -> Iterator[SshLab]:
    """Yield `count` nodes of that kind. They end with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / "id_ed25519"
    ensure_client_key(key)
    if kind == "openssh":
        with openssh_nodes(folder / "sshd", count, key) as servers:
            homes = {server.node.name: server.home for server in servers}
            yield SshLab(kind, [s.node for s in servers], homes, key)
        return
    simulated = start_simulated_nodes(folder, count, key=key)
    try:
        homes = {node.name: layout.home(simulated.folder, node.name) for node in simulated.nodes}
        yield SshLab(kind, list(simulated.nodes), homes, key)
    finally:
        simulated.stop()


class Line:
    """A TCP proxy to a node. Its connections can be cut at once, cut after some bytes, or stalled silently."""

    def __init__(self, node: Node) -> None:
        self._target = (node.address, node.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.node = replace(node, address="127.0.0.1", port=self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._flowing = threading.Event()
        self._flowing.set()
        self._left: dict[bool, int] = {}
        self._counting = threading.Lock()
        self.cuts = 0
        self._run(self._accept)

    def cut(self) -> None:
        """Break every connection."""
        self.cuts += 1
        for sock in tuple(self._open):  # a client that connects again at once gets a new connection
            _break(sock)

    def cut_after(self, count: int, *, from_node: bool = True) -> None:
        """Break every connection after `count` more bytes from the node or, without `from_node`, from this side. This happens
        once. Another call before that has no effect."""
        with self._counting:
            self._left.setdefault(from_node, count)

    @property
    def holds(self) -> bool:
        """Return whether the proxy stalls its connections."""
        return not self._flowing.is_set()

    def hold(self) -> None:
        """Stall: let nothing through, but keep the connections open."""
        self._flowing.clear()

    def release(self) -> None:
        """Let everything through again."""
        self._flowing.set()

    def refuse(self) -> None:
        """Break every connection and refuse new ones."""
        _break(self._listener)
        self.cut()

    def close(self) -> None:
        """Close every connection and end the threads."""
        self.release()
        self.refuse()
        for thread in self._threads:
            thread.join(STUCK_S)
            assert not thread.is_alive()
        for sock in (self._listener, *self._open):
            sock.close()

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                self._open.append(near)
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._open.append(far)
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._run(self._pump, near, far, False)
            self._run(self._pump, far, near, True)

    def _pump(self, source: socket.socket, target: socket.socket, from_node: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                self._flowing.wait()
                if self._reaches_the_end(from_node, len(data)):
                    target.sendall(data[: len(data) // 2])
                    self.cut()
                    return
                target.sendall(data)
        except OSError:
            pass
        _break(source)
        _break(target)

    def _reaches_the_end(self, from_node: bool, count: int) -> bool:
        """Return whether these bytes reach the limit of `cut_after`. Each connection's thread calls this."""
        with self._counting:
            if from_node not in self._left:
                return False
            self._left[from_node] -= count
            if self._left[from_node] > 0:
                return False
            del self._left[from_node]
            return True


def _break(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def find_marked_processes(folder: Path) -> list[int]:
    """Return the processes with the mark of a job folder."""
    mark = f"GPUCOURSE_RUN_DIR={folder}".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
            except OSError:
                continue
    return pids
