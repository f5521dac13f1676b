"""The connection to the client that follows a run: frames as they come, and a sign of life while there is nothing to send."""

from __future__ import annotations

import os
import time

from gpucourse.remote.agent import frames

BEAT_S = 0.5
PIECE = 1 << 17
"""The largest number of bytes of one log that are read in one step."""

_NAP_S = 0.05


class Line:
    """An open file descriptor for frames."""

    def __init__(self, out: int) -> None:
        self._out, self._last_sent = out, 0.0

    def send(self, kind: bytes, stream: int = 0, offset: int = 0, data: bytes = b"") -> None:
        """Send one frame, whole. Raises BrokenPipeError if no client follows any more."""
        view = memoryview(frames.frame(kind, stream, offset, data))
        while view:
            view = view[os.write(self._out, view) :]

    def send_log(self, stream: int, path: str, offset: int, limit: int | None, *, whole: bool) -> int:
        """Send the part of a log from `offset` to `limit`: one piece, so that no log waits for another, or all of it if `whole`
        is set. Return the offset at which the sent part ends. No file stays open, because an array may have more logs than one
        process may have files."""
        while os.stat(path).st_size > offset and (limit is None or offset < limit):
            with open(path, "rb", buffering=0) as log:
                data = os.pread(log.fileno(), PIECE if limit is None else min(PIECE, limit - offset), offset)
            self.send(frames.LOG, stream, offset, data)
            offset += len(data)
            if not whole:
                break
        return offset

    def rest(self, *, has_sent: bool) -> None:
        """Pause between two looks at the logs, except after a look that found something."""
        now = time.monotonic()
        if has_sent:
            self._last_sent = now
            return
        if now - self._last_sent >= BEAT_S:
            self.send(frames.BEAT)
            self._last_sent = now
        time.sleep(_NAP_S)
