"""Connections that are begun before anybody asks for them: taken once, asked for once, and dropped where nobody wants them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult, Link
from gpucourse.remote.early import EarlyTransport, ProbeRequest
from tests.unit.remote.test_keys import node
from tests.waiting import STUCK_S, until

NODES = [replace(node(0), name=f"node{number}") for number in range(2)]
ANSWER = (
    b'{"python": "3.11.2", "modules": {"torch": {"found": true, "version": ""}}, "missing_programs": [], "ports": [29500], '
)
ANSWER += b'"disk_free_bytes": 1, "cores": 2, "hostname": "n", "interfaces": {}, "clock": 1.0}'


class _Link:
    """A link that counts what it is asked."""

    def __init__(self, node: Node) -> None:
        self.node, self.alive, self.asked = node, True, 0

    def run(self, _command: str, *, stdin: object = b"", timeout_s: float = 0.0) -> CommandResult:
        self.asked += 1
        return CommandResult(code=0, stdout=ANSWER, stderr=b"")

    @contextmanager
    def stream(self, _command: str, *, stdin: bytes = b"", silence_s: float = 0.0) -> Iterator[Iterator[bytes]]:
        yield iter(())

    def close(self) -> None:
        self.alive = False


class _Transport:
    """A transport whose nodes answer once `open` is set; `refused` are those that never do."""

    def __init__(self, *refused: str) -> None:
        self.open, self.refused = threading.Event(), refused
        self.links: list[_Link] = []
        self.tried = 0

    def connect(self, node: Node, *, timeout_s: float = 0.0) -> Link:
        assert self.open.wait(STUCK_S)
        refused, self.tried = self.refused, self.tried + 1
        if node.name in refused:
            raise UnreachableError(f"{node.name} does not answer")
        self.links.append(_Link(node))
        return self.links[-1]


def test_connect_takes_the_early_link_once() -> None:
    transport = _Transport()
    with closing(EarlyTransport(transport, NODES)) as early:
        transport.open.set()
        taken = [early.connect(node) for node in NODES]
        assert {link.node.name for link in taken} == {"node0", "node1"}
        assert len(transport.links) == 2
        again = early.connect(NODES[0])
        assert again not in taken
        assert len(transport.links) == 3
    assert all(link.alive for link in transport.links)  # whoever took them closes them


def test_connect_raises_the_error_of_the_early_try() -> None:
    transport = _Transport("node1")
    transport.open.set()
    with closing(EarlyTransport(transport, NODES, modules=("torch",))) as early:
        assert early.connect(NODES[0]).alive
        with pytest.raises(UnreachableError, match="node1 does not answer"):
            early.connect(NODES[1])
        assert early.find(NODES[1], ProbeRequest(modules=("torch",))) is None


def test_find_uses_only_the_answer_to_the_same_question() -> None:
    transport = _Transport()
    transport.open.set()
    with closing(EarlyTransport(transport, NODES[:1], modules=("torch",))) as early:
        assert early.find(NODES[0], ProbeRequest(modules=("torch", "numpy"))) is None
        assert early.find(NODES[0], ProbeRequest(modules=("torch",), ports=(30000, 30010))) is None
        assert early.find(NODES[1], ProbeRequest(modules=("torch",))) is None
        findings = early.find(NODES[0], ProbeRequest(modules=("torch",)))
        assert findings is not None
        assert findings.free_ports == (29500,)
        assert early.find(NODES[0], ProbeRequest(modules=("torch",))) is None  # it may be another a second time
        assert transport.links[0].asked == 1


def test_close_drops_links_that_were_not_taken() -> None:
    transport = _Transport()
    early = EarlyTransport(transport, NODES)
    early.close()
    transport.open.set()
    until(lambda: len(transport.links) == 2 and not any(link.alive for link in transport.links))
