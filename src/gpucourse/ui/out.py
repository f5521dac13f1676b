"""Write to one of the person's streams, and handle a closed pipe. No other code writes to these streams."""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from typing import TextIO

from gpucourse.ui.glyphs import TO_ASCII, lacks_glyphs

_GONE = {errno.EPIPE, errno.EIO, errno.ECONNRESET, errno.ENXIO}


class Out:
    """Write each text to a stream in one piece, from any thread. After the reader has closed the stream, it writes nothing.

    A full disk behind a redirected stream raises OSError once; after that, nothing more is written.
    """

    def __init__(self, stream: TextIO) -> None:
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.ascii = lacks_glyphs(self.encoding)
        self.closed = False
        self.apart = True  # the last text ended in a blank line, or nothing was written yet
        self.written_at = 0.0
        self._stream = stream
        self._lock = threading.RLock()
        self._fd = _descriptor(stream)
        self.terminal = _is_terminal(stream)
        self.place = _find_place(self._fd)

    def write(self, text: str) -> None:
        """Write the text unchanged. The caller has already cleaned text from outside."""
        if self.ascii:
            text = text.translate(TO_ASCII)
        self._write(text, text.endswith("\n\n"))

    def write_bytes(self, data: bytes) -> None:
        """Write the bytes unchanged."""
        self._write(data, data.endswith(b"\n\n"))

    def _write(self, data: str | bytes, is_apart: bool) -> None:
        with self._lock:
            if self.closed or not data:
                return
            self.apart, self.written_at = is_apart, time.monotonic()
            try:
                self._put(data)
            except (OSError, ValueError) as error:
                self.closed = True
                if isinstance(error, ValueError) or error.errno == errno.EBADF:
                    return  # closed by its owner; by now the descriptor may belong to another file
                self._redirect_to_null_device()
                if error.errno not in _GONE:
                    raise

    def size(self) -> tuple[int, int]:
        """Return the current size of the terminal in columns and lines, or (80, 24) if it does not report one."""
        try:
            columns, lines = os.get_terminal_size(self._fd if self._fd is not None else -1)
        except OSError:
            return 80, 24
        return columns or 80, lines or 24

    def _put(self, text: str | bytes) -> None:
        data = text.encode(self.encoding, "replace") if isinstance(text, str) else text
        if self._fd is None:
            self._stream.write(data.decode(self.encoding, "replace"))
            self._stream.flush()
            return
        # Write to the descriptor itself: if another program has made the terminal non-blocking, Python's buffer loses a part.
        self._stream.flush()
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[self._write_some(self._fd, remaining) :]

    def _write_some(self, fd: int, remaining: memoryview) -> int:
        try:
            return os.write(fd, remaining)
        except BlockingIOError:
            select.select([], [fd], [])
            return 0

    def _redirect_to_null_device(self) -> None:
        """Connect the descriptor to the null device, because the reader is gone. When the interpreter ends, it flushes the
        stream again, which must not fail."""
        if self._fd is not None:
            null_device = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null_device, self._fd)
            os.close(null_device)


def _find_place(fd: int | None) -> object:
    """Return a value that identifies the file or pipe, because two streams to the same place are read as one text (`2>&1`)."""
    try:
        status = os.fstat(fd) if fd is not None else None
    except OSError:
        status = None
    return object() if status is None else (status.st_dev, status.st_ino)


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (ValueError, AttributeError):
        return False
