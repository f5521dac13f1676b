"""Nodes whose agent returns scripted answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from tests.unit.remote.agent_link import verb_of

PROBE: dict[str, Any] = {
    "python_version": "3.11.2", "modules": {"torch": None}, "free_ports": [29501], "cores": 8, "clock": 0.0,
}  # fmt: skip


class AnsweringLink:
    """A link to a node that answers each verb with a document, or raises an error. Implements ports.Link."""

    def __init__(self, node: Node, answers: dict[str, Any]) -> None:
        self.node, self.answers, self.alive = node, answers, True

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> CommandResult:
        assert timeout_s
        assert stdin is not None
        answer = self.answers[verb_of(command)]
        if isinstance(answer, Exception):
            raise answer
        return CommandResult(code=0, stdout=json.dumps(answer).encode(), stderr=b"")

    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> AbstractContextManager[Iterator[bytes]]:
        raise AssertionError(command, stdin, silence_s)

    def close(self) -> None:
        self.alive = False


class AnsweringNodes:
    """A transport to such nodes, with their answers by the name of the node. It records the links that it makes."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.links = answers, list[AnsweringLink]()

    def connect(self, node: Node, *, timeout_s: float = 10.0, shared: str = "") -> AnsweringLink:
        assert timeout_s
        if isinstance(self.answers[node.name], Exception):
            raise self.answers[node.name]
        self.links.append(AnsweringLink(node, self.answers[node.name]))
        return self.links[-1]
