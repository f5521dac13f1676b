"""The frames that `follow` sends. Each has a kind, the stream of a log, the offset in the log, and the bytes.

The connection to the client carries frames and, while there is nothing to send, heartbeats.
"""

from __future__ import annotations

import os
import struct
import time

LOG, RANK, END, BEAT, NAMED = b"L", b"R", b"E", b"B", b"N"
"""The kinds: a piece of a log, the end of a rank, the end of the run on this node, a heartbeat, the node and rank of a log."""

HEADER = struct.Struct(">cIQI")
"""The kind, the stream, the offset of the first byte in the node's log, and the length of the payload."""


def frame(kind: bytes, stream: int = 0, offset: int = 0, payload: bytes = b"") -> bytes:
    """Return one frame as bytes: a header with the length of the payload, then the payload."""
    return HEADER.pack(kind, stream, offset, len(payload)) + payload


BEAT_S = 0.5
PIECE = 1 << 17
"""The maximum number of bytes of one log that are read in one step."""

_NAP_S = 0.05


class Line:
    """The connection to the client that follows a run: an open file descriptor."""

    def __init__(self, out: int) -> None:
        self._out, self._last_sent = out, 0.0

    def send(self, kind: bytes, stream: int = 0, offset: int = 0, data: bytes = b"") -> None:
        """Send one whole frame. Raises BrokenPipeError if the client has left."""
        view = memoryview(frame(kind, stream, offset, data))
        while view:
            view = view[os.write(self._out, view) :]

    def send_log(self, stream: int, path: str, offset: int, limit: int | None, *, whole: bool) -> int:
        """Send a log from `offset` to `limit`, and return the offset at which the sent part ends.

        Only one piece is sent, so that no other log has to wait. With `whole`, all pieces are sent. No file stays open, because
        an array may have more logs than a process may have open files.
        """
        while os.stat(path).st_size > offset and (limit is None or offset < limit):
            with open(path, "rb", buffering=0) as log:
                data = os.pread(log.fileno(), PIECE if limit is None else min(PIECE, limit - offset), offset)
            self.send(LOG, stream, offset, data)
            offset += len(data)
            if not whole:
                break
        return offset

    def rest(self, *, has_sent: bool) -> None:
        """If the last look at the logs found nothing to send, pause. After half a second without a frame, send a heartbeat."""
        now = time.monotonic()
        if has_sent:
            self._last_sent = now
            return
        if now - self._last_sent >= BEAT_S:
            self.send(BEAT)
            self._last_sent = now
        time.sleep(_NAP_S)
