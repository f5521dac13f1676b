"""Links that work over another link: with a home folder that all machines of a cluster share, kept for the next user of the
same node, or with several questions in one request."""

from __future__ import annotations

import json
import secrets
import shlex
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain

from gpucourse.errors import GpucourseError, UnreachableError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult, Link, Transport
from gpucourse.remote import jobs
from gpucourse.remote.exchange import EndedEarly
from gpucourse.remote.login_shell import MOST_KEPT, MOST_NOISE, OwnOutput
from gpucourse.remote.patience import ANSWER_S, COLLECT_S, CONNECT_S, Patience

_LONGEST_INPUT = 4 << 10
"""Bytes of the input of a question in an early request: about sixty files that are here already."""

_AROUND = 30
"""Bytes of a question in a request besides its words and its input."""

MOST_PASSED_OVER = 8 << 20
"""Bytes of skipped answers: after this many, the rest of the request is given up."""

_PASSED_OVER_S = 20.0
"""The time for skipping answers, besides what their bytes need at PACE. The caller that waits has a time limit, and then uses
the link below."""


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


def ask_ahead(link: Link, questions: Iterable[jobs.StreamRequest]) -> Link:
    """Return a link that sends these questions ahead, in as few requests as their length allows. A question with a long input,
    which names many files that are here already, is left to its caller."""
    parts: list[list[jobs.StreamRequest]] = [[]]
    inputs, length = set[bytes](), 0
    for question in questions:
        if len(question.stdin) > _LONGEST_INPUT:
            continue
        length += len(_write_request("", (question,))) if question.stdin not in inputs else len(str(question.words)) + _AROUND
        if length > MOST_KEPT - _LONGEST_INPUT:
            parts.append([])
            inputs, length = set(), len(_write_request("", (question,)))
        parts[-1].append(question)
        inputs.add(question.stdin)
    for part in reversed(parts):
        link = AheadLink(link, part) if part else link
    return link


def _write_request(mark: str, questions: Sequence[jobs.StreamRequest]) -> bytes:
    """Return several questions as one request, each input once: the questions about many runs differ only in the run."""
    places = {stdin: place for place, stdin in enumerate(dict.fromkeys(question.stdin for question in questions))}
    asked = [{"words": question.words, "input": places[question.stdin]} for question in questions]
    return json.dumps({"mark": mark, "questions": asked, "inputs": [stdin.decode() for stdin in places]}).encode()


class AheadLink:
    """A link that sends some questions ahead, in one request. The node answers one after the other; each answer goes to the
    caller with exactly that question, and earlier answers without a caller are skipped. Any other question is sent on the link
    below, and so is one that failed, to get the reason there. Once the request itself has failed, all are sent below.
    `within_s`: the longest wait for the beginning of an answer. Implements ports.Link."""

    def __init__(self, link: Link, questions: Sequence[jobs.StreamRequest], *, within_s: float = COLLECT_S) -> None:
        self.node, self._within_s = link.node, within_s
        self._link, self._questions = link, tuple(questions)
        self._left = deque((jobs.command(link.node, *question.words), question.stdin) for question in questions)
        self._mark = secrets.token_hex(16)
        self._request, self._after = ExitStack(), b""
        self._pieces: Iterator[bytes] = iter(())
        self._answer: Iterator[bytes] = iter(())
        self._taken = threading.Lock()  # held while an answer is read

    @property
    def alive(self) -> bool:
        """Whether the connection is still open."""
        return self._link.alive

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = ANSWER_S) -> CommandResult:
        """Run a command on the link below."""
        return self._link.run(command, stdin=stdin, timeout_s=timeout_s)

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = ANSWER_S) -> Iterator[Iterator[bytes]]:
        """Yield the answer that was requested ahead, else the one of the link below."""
        with ExitStack() as stack:
            pieces = None
            if self._taken.acquire(blocking=False):
                stack.callback(self._taken.release)
                stack.callback(self._end_request)
                pieces = self._find_answer((command, stdin))
            yield (
                stack.enter_context(self._link.stream(command, stdin=stdin, silence_s=silence_s)) if pieces is None else pieces
            )

    def close(self) -> None:
        """Drop the connection."""
        self._link.close()

    def _end_request(self) -> None:
        """End the request after the last answer, so that its shell can run another command."""
        if not self._left:
            self._request.close()

    def _find_answer(self, asked: tuple[str, bytes]) -> Iterator[bytes] | None:
        """Return the answer, from its first piece on; None if it is not among those to come, or the question failed."""
        if asked not in self._left:
            return None
        patience, passed = Patience(f"{self.node.label}: its answers", _PASSED_OVER_S), 0
        while True:
            try:
                for piece in patience.watch(self._answer):
                    passed += len(piece)
                    if passed > MOST_PASSED_OVER:
                        self._left.clear()
                        break
            except EndedEarly:  # that question failed, and it has no caller
                pass
            except UnreachableError:
                self._left.clear()
            if asked not in self._left:
                self._request.close()
                return None
            is_it = self._left.popleft() == asked
            self._answer = self._read_answer()
            if is_it:
                break
        try:
            return chain((next(self._answer, b""),), self._answer)
        except EndedEarly:
            return None

    def _read_answer(self) -> Iterator[bytes]:
        own = OwnOutput(f"{self._mark}-out".encode(), f"{self._mark}-end".encode())
        try:
            yield from self._read_own(own)
        except GpucourseError:  # no other answer comes, and the rest of this one must not be read as the next
            self._left.clear()
            raise
        self._after = own.after()
        if own.code != 0:
            raise EndedEarly(self.node.label, own.code or -1, b"")

    def _read_own(self, own: OwnOutput) -> Iterator[bytes]:
        """Yield the bytes of the next answer, up to its end."""
        if len(self._left) + 1 == len(self._questions):
            wanted = _write_request(self._mark, self._questions)
            self._pieces = self._request.enter_context(jobs.stream_verb(self._link, "several", stdin=wanted))
        patience, has_begun = Patience(f"{self.node.label}: its next answer", self._within_s), False
        for piece in chain((self._after,), self._pieces):
            data = own.take(piece)
            if data or has_begun:  # from here on the reader has its own time limit
                has_begun = True
                yield data
            else:
                patience.check()
            if own.noise_bytes > MOST_NOISE:
                raise UnreachableError(f"{self.node.label}: it sends something else than the answers that it was asked for")
            if own.ended:
                return
        raise UnreachableError(f"{self.node.label}: it answered {len(self._left) + 1} questions fewer than it was asked")
