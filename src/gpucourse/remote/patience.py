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


def limit_time(
    subject: str,
    pieces: Iterable[bytes],
    seconds: float,
    *,
    until: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """Yield the pieces of one answer for at most `seconds`, and more for every byte of it, at PACE and up to MAX_EXTRA_S; never
    longer than `until` (by the monotonic clock). Raises UnreachableError when the time is over."""
    start_s, byte_count = clock(), 0
    for piece in pieces:
        byte_count += len(piece)
        now = clock()
        is_late = until is not None and now >= until
        if is_late or now - start_s >= seconds + extra_s(byte_count):
            reason = "the time limit for all nodes together has passed" if is_late else f"{byte_count} bytes arrived meanwhile"
            raise UnreachableError(
                f"{subject} took longer than {now - start_s:.0f} s: {reason}",
                hint="the node or the line to it is overloaded or frozen: gpucourse status",
            )
        yield piece
