"""The part of a link that does not depend on how the node is reached: commands, their limits, and a folder that nodes
share."""

from __future__ import annotations

import shlex
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.remote.exchange import Channel, Exchange
from gpucourse.remote.login_shell import Request, Stdin
from gpucourse.remote.patience import ANSWER_S, REST_S

MAX_COMMANDS = 8
"""The maximum number of commands at a time on one connection. OpenSSH allows ten channels by default, and one is opened in
advance."""

# A missing shared folder is not made: its name is wrong, or its file system is not mounted.
_ENTER = 'HOME={shared}/gpucourse-"$(id -un)"; export HOME; [ -d "$HOME" ] || mkdir -m 700 "$HOME"; cd "$HOME" || exit 73; '


class CommandLink(ABC):
    """A live connection to one node, for at most eight commands at a time. Implements ports.Link.

    `shared`: a folder that all machines of a cluster share. If it is set, HOME is the user's own folder below it, and commands
    start there.
    """

    def __init__(self, node: Node, shared: str = "") -> None:
        self.node = node
        self._enter = _ENTER.format(shared=shlex.quote(shared)) if shared else ""
        self._places = threading.BoundedSemaphore(MAX_COMMANDS)

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Return whether the connection is still open, as far as this computer can tell."""

    def run(self, command: str, *, stdin: Stdin = b"", timeout_s: float = ANSWER_S) -> CommandResult:
        """Run a shell command in the node's home folder and return its result. Its output may have at most
        `exchange.MAX_ANSWER` bytes.

        Raises UnreachableError if the connection is lost, if no byte is sent or received for `timeout_s`, or if the whole
        answer takes twice as long, counted from the end of the input. In these cases, it is unknown whether the command ran.
        """
        with self._exchange(command, stdin, timeout_s) as exchange:
            stdout = exchange.answer()
            return CommandResult(code=exchange.code(), stdout=stdout, stderr=exchange.stderr())

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = ANSWER_S) -> Iterator[Iterator[bytes]]:
        """Run a command and yield its standard output in pieces as they arrive, until it ends.

        Raises UnreachableError if the connection is lost, if nothing arrives for `silence_s`, or if the exit code is not 0. In
        the last case, the error contains the end of standard error.

        If the block ends earlier, the command has REST_S seconds to end.
        """
        with self._exchange(command, stdin, silence_s) as exchange:
            yield exchange.stdout_then_code()
            exchange.read_rest(REST_S)

    @abstractmethod
    def close(self) -> None:
        """Close the connection. Detached processes on the node keep running."""

    @abstractmethod
    def _start(self, line: str, timeout_s: float, /) -> Channel:
        """Start a command line, and return its channel. Raises UnreachableError."""

    @contextmanager
    def _exchange(self, command: str, stdin: Stdin, silence_s: float) -> Iterator[Exchange]:
        if not self._places.acquire(timeout=max(silence_s, 0.001)):
            raise UnreachableError(
                f"{self.node.label}: all {MAX_COMMANDS} channels of the connection were busy for {silence_s:g} s"
            )
        try:
            request = Request(self._enter + command, stdin)
            exchange = Exchange(self.node.label, self._start(request.line, silence_s), request, silence_s)
            try:
                yield exchange
            finally:
                exchange.close()
        finally:
            self._places.release()
