"""Time limits for waiting for a node. Every wait ends, whatever the node sends in the meantime."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from gpucourse.errors import UnreachableError

ANSWER_S = 60.0
"""The time limit for a command on a node to print something. Its whole answer may take twice as long."""

CONNECT_S = 10.0
"""The time limit for each step of connecting to a node (connection, handshake, login), unless the caller sets another
limit."""

REST_S = 1.0
"""The time that a command has to end by itself after it has sent everything that was requested."""

PACE = 16 << 10
"""The lowest average rate at which a node may send its answer, in bytes per second."""

COPY_PACE = 16 << 20
"""The lowest rate at which a node may copy the files of a run, in bytes per second."""

MAX_EXTRA_S = 4 * 3600.0
"""The longest time that the bytes of one answer may add to its limit, however many they are."""

COLLECT_S = 120.0
"""The time limit for collecting the outputs of one node, in addition to the time for their bytes at PACE."""

AFTER_CANCEL_S = 120.0
"""The time limit for a cancelled run to end on its nodes, in addition to the time for its logs at PACE."""

AFTER_LIMIT_S = 300.0
"""The time limit for a run to end on its nodes after its own time limit, in addition to the time for its logs at PACE."""

DESTROY_S = 1800.0
"""The time limit for `destroy` to collect everything."""


def extra_s(count: int) -> float:
    """Return how many seconds `count` bytes add to the time limit of an answer."""
    return min(count / PACE, MAX_EXTRA_S)


def limit_time(
    subject: str,
    pieces: Iterable[bytes],
    seconds: float,
    *,
    until: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """Yield the pieces of one answer for at most `seconds`, plus the time for its bytes at PACE (at most MAX_EXTRA_S).

    `until`: the latest end, on the monotonic clock. Raises UnreachableError when the time is up.
    """
    start_s, byte_count = clock(), 0
    for piece in pieces:
        byte_count += len(piece)
        now = clock()
        is_late = until is not None and now >= until
        if is_late or now - start_s >= seconds + extra_s(byte_count):
            reason = "the time limit for all nodes together has passed" if is_late else f"{byte_count} bytes arrived meanwhile"
            raise UnreachableError(
                f"{subject} took longer than {now - start_s:.0f} s: {reason}",
                hint="the node or the connection to it is overloaded or frozen: gpucourse status",
            )
        yield piece
