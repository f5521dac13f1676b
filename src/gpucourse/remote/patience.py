"""The limits of waiting for a node. Every wait ends, whatever the node sends meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from gpucourse.errors import UnreachableError

ANSWER_S = 60.0
"""Until a command on a node prints something; its whole answer may need twice as long."""

CONNECT_S = 10.0
"""Until a node is connected and has authenticated us, unless the caller sets another limit."""

REST_S = 1.0
"""The time that a command may need to end by itself after its stream had everything that was requested."""

PACE = 16 << 10
"""Bytes a second. A node that sends more slowly than this over its whole answer is given up."""

COPY_PACE = 16 << 20
"""Bytes a second. A node that copies the files of a run more slowly than this is given up."""

MAX_EXTRA_S = 4 * 3600.0
"""The most time that the bytes of one answer may add, however many they are."""

COLLECT_S = 120.0
"""Until the outputs of one node are collected, besides what their bytes need at PACE."""

AFTER_CANCEL_S = 120.0
"""Until a run that was cancelled has ended on its nodes, besides what its logs need at PACE."""

AFTER_LIMIT_S = 300.0
"""Until a run has ended on its nodes after its own time limit, besides what its logs need at PACE."""

DESTROY_S = 1800.0
"""Until `destroy` has collected everything, in all."""


def extra_s(count: int) -> float:
    """Return how many seconds that many bytes add to the time of an answer."""
    return min(count / PACE, MAX_EXTRA_S)


class Patience:
    """The time limit of one answer: `seconds`, and more for every byte of it, at PACE and up to MAX_EXTRA_S; never longer than
    `until` (by the monotonic clock)."""

    def __init__(
        self,
        subject: str,
        seconds: float,
        *,
        until: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._seconds, self._until, self._clock = subject, seconds, until, clock
        self._began, self._bytes = clock(), 0

    def count_bytes(self, count: int) -> None:
        """Count bytes that arrived. Raises UnreachableError if the time is over."""
        self._bytes += count
        self.check()

    def check(self) -> None:
        """Check the time limit. Raises UnreachableError if the time is over."""
        now = self._clock()
        if self._until is not None and now >= self._until:
            raise self._make_error(now, "the time limit for all nodes together has passed")
        if now - self._began >= self._seconds + extra_s(self._bytes):
            raise self._make_error(now, f"{self._bytes} bytes arrived meanwhile")

    def watch(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the same pieces, until the time is over."""
        for piece in pieces:
            self.count_bytes(len(piece))
            yield piece

    def _make_error(self, now: float, reason: str) -> UnreachableError:
        return UnreachableError(
            f"{self._what} took longer than {now - self._began:.0f} s: {reason}",
            hint="the node or the line to it is overloaded or frozen: gpucourse status",
        )
