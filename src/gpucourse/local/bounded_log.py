"""A log file that keeps its newest part and never grows past a limit."""

from __future__ import annotations

import logging
import os

_LIMIT_BYTES = 1 << 19
_KEPT_BYTES = 1 << 17


class BoundedLog(logging.Handler):
    """Writes to a file that is open for reading and appending; beyond half a MiB the oldest lines are dropped."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Append the record. A full disk loses the line, not the nodes."""
        try:
            line = self.format(record).encode(errors="backslashreplace") + b"\n"
            os.write(self._handle, line[:_KEPT_BYTES])
            size = os.fstat(self._handle).st_size
            if size > _LIMIT_BYTES:
                newest = os.pread(self._handle, _KEPT_BYTES, size - _KEPT_BYTES).partition(b"\n")[2]
                os.ftruncate(self._handle, 0)
                os.write(self._handle, newest)
        except OSError:
            self.handleError(record)
