"""The interfaces of a transport and of its links to nodes. The package `remote`, one layer up, implements them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from gpucourse.model.node import Node


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The result of a command that ran to its end on a node. `code` is the shell's exit code."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        """Return whether the command exited with 0."""
        return self.code == 0


class Link(Protocol):
    """A live connection to one node. Every call ends by its deadline; a lost connection raises UnreachableError."""

    node: Node

    @property
    def alive(self) -> bool:
        """Return whether the connection is still open, as far as this computer can tell."""
        ...

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> CommandResult:
        """Run a shell command in the node's home folder and return its result.

        Raises UnreachableError if nothing arrives for `timeout_s`, or if the whole answer takes more than twice that time.
        Raises NodeUntrusted if the answer is longer than any honest answer.
        """
        ...

    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> AbstractContextManager[Iterator[bytes]]:
        """Run a command and yield its standard output in pieces as they arrive, until it ends.

        Raises UnreachableError after `silence_s` without a byte, or at the end if the exit code is not 0.
        """
        ...

    def close(self) -> None:
        """Close the connection. Detached processes on the node keep running."""
        ...


class Transport(Protocol):
    """Make links to nodes."""

    def connect(self, node: Node, *, timeout_s: float = 10.0, shared: str = "") -> Link:
        """Connect to a node and log in. Raises UnreachableError, including when the node's host key is not the recorded one.

        `shared`: a folder that all machines of a cluster share. If it is set, HOME is the user's own folder below it, and
        commands start there.
        """
        ...
