"""Links that work over another link: with a home folder that all machines of a cluster share, or kept for the next user of
the same node."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult, Link, Transport
from gpucourse.remote.exchange import EndedEarly
from gpucourse.remote.patience import ANSWER_S, CONNECT_S


class SharedTransport:
    """Makes links that work in the user's folder below `folder`. Implements ports.Transport."""

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


class KeptTransport:
    """Makes links with another transport and keeps them: later and simultaneous users of a node share the link that exists. A
    link that failed gets no new user, and is closed when its last user closes it. Implements ports.Transport."""

    def __init__(self, make: Callable[[], Transport]) -> None:
        self._make = make
        self._transport: Transport | None = None
        self._newest: dict[Node, _Connection] = {}
        self._made: list[_Connection] = []
        self._locks: dict[Node, threading.Lock] = {}
        self._lock = threading.Lock()

    def connect(self, node: Node, *, timeout_s: float = CONNECT_S) -> Link:
        """Return the link to the node that is kept, else a new one. Raises what the transport below raises."""
        with self._lock:
            transport = self._transport = self._transport or self._make()
            lock = self._locks.setdefault(node, threading.Lock())
        with lock:
            shared = self._newest.get(node)
            if shared is None or not shared.take():
                shared = self._newest[node] = _Connection(transport.connect(node, timeout_s=timeout_s))
                self._made.append(shared)
            return _KeptLink(shared)

    def close(self) -> None:
        """Drop every connection."""
        for shared in self._made:
            shared.link.close()


class _Connection:
    """A link, and the number of its users."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._users, self._failed, self._lock = 1, False, threading.Lock()

    def take(self) -> bool:
        """Return whether the link can have another user; if so, count that user."""
        with self._lock:
            good = self.link.alive and not self._failed
            self._users += good
            return good

    def give_back(self, *, failed: bool) -> None:
        """Remove one user. A failure for one user need not affect the others, who send other requests."""
        with self._lock:
            self._users -= 1
            self._failed |= failed
            if self._failed and not self._users:
                self.link.close()


class _KeptLink:
    """A kept link as one user has it. After `close` it stays open for the next user, unless something failed on it."""

    def __init__(self, shared: _Connection) -> None:
        self.node = shared.link.node
        self._shared, self._link = shared, shared.link
        self._failed = self._closed = False

    @property
    def alive(self) -> bool:
        return self._link.alive and not self._closed

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = ANSWER_S) -> CommandResult:
        with self._noting_failure():
            return self._link.run(command, stdin=stdin, timeout_s=timeout_s)

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = ANSWER_S) -> Iterator[Iterator[bytes]]:
        with self._noting_failure(), self._link.stream(command, stdin=stdin, silence_s=silence_s) as pieces:
            yield pieces

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._shared.give_back(failed=self._failed)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except EndedEarly:  # the command failed, not the link
            raise
        except UnreachableError:
            self._failed = True
            raise
