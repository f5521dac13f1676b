"""Links whose home folder is one that all machines of a cluster share: what a run leaves there, every node can reach."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from gpucourse.model.node import Node
from gpucourse.ports import CommandResult, Link, Transport
from gpucourse.remote.patience import ANSWER_S, CONNECT_S


class SharedTransport:
    """Makes links that live in a folder of the user's own below `folder`. Implements ports.Transport."""

    def __init__(self, transport: Transport, folder: str) -> None:
        self._transport, self._folder = transport, folder

    def connect(self, node: Node, *, timeout_s: float = CONNECT_S) -> SharedLink:
        """Connect; raises what the transport below raises."""
        return SharedLink(self._transport.connect(node, timeout_s=timeout_s), self._folder)


class SharedLink:
    """A link whose commands start in the shared folder, which is also their HOME. Implements ports.Link."""

    def __init__(self, link: Link, folder: str) -> None:
        self.node = link.node
        self._link = link
        self._home = (
            f'HOME={shlex.quote(folder)}/gpucourse-"$(id -un)"; export HOME; mkdir -p -m 700 "$HOME" && cd "$HOME" || exit 73; '
        )

    @property
    def alive(self) -> bool:
        """Whether the connection is still open."""
        return self._link.alive

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = ANSWER_S) -> CommandResult:
        """Run a shell command in the shared folder."""
        return self._link.run(self._home + command, stdin=stdin, timeout_s=timeout_s)

    def stream(
        self, command: str, *, stdin: bytes = b"", silence_s: float = ANSWER_S
    ) -> AbstractContextManager[Iterator[bytes]]:
        """Run a command in the shared folder and yield what it prints."""
        return self._link.stream(self._home + command, stdin=stdin, silence_s=silence_s)

    def close(self) -> None:
        """Drop the connection."""
        self._link.close()
