"""Write logs to a pipe, a file or a simple terminal: every line of every rank, with a prefix. Writes are large, and wait for
the reader."""

from __future__ import annotations

import threading

from gpucourse.model.event import LogBytes
from gpucourse.ui.loglines import LineLimit, Source, source_of, visible, wrap_lines
from gpucourse.ui.out import Out
from gpucourse.ui.styles import paint

MAX_PIECE = 64 << 10  # a line without a newline is broken at this length, so that no rank can fill the memory


class LogPipe:
    """Print the logs that `feed` receives from any thread, line by line; parts of two lines are never mixed.

    With `fold`, lines of launchers and libraries are counted, not printed. `limit` is the number of bytes of a line that are
    printed, or None for all. A line is printed when its newline arrives, however long that takes, so that a pause in the output
    does not split it.
    """

    def __init__(self, out: Out, *, colour: bool = False, fold: bool = False, limit: int | None = None) -> None:
        self._out = out
        self._fold = fold
        self._colour = colour
        self._lock = threading.Lock()
        self._sources: dict[tuple[str, int | None], Source] = {}
        self._most = limit
        self._limits: dict[tuple[str, int | None], LineLimit] = {}

    def feed(self, event: LogBytes) -> None:
        """Print the lines that this piece completes."""
        with self._lock:
            source = source_of(self._sources, event)
            data = event.data
            if self._most is not None:
                key = (source.node, source.rank)
                data = self._limits.setdefault(key, LineLimit(source.file, self._most)).cut(data)
            cut = data.rfind(b"\n")
            if cut >= 0:
                self._print(source, source.partial + data[:cut])
                source.partial = data[cut + 1 :]
            else:
                source.partial += data
            while len(source.partial) > MAX_PIECE:
                self._print(source, source.partial[:MAX_PIECE])
                source.partial = source.partial[MAX_PIECE:]

    def close(self) -> None:
        """Print the remaining lines, which do not end with a newline."""
        with self._lock:
            for key, source in self._sources.items():
                if source.partial:
                    source.partial += self._limits[key].end() if key in self._limits else b""
                    self._print(source, source.partial)
                    source.partial = b""

    def sources(self) -> list[Source]:
        """Return every rank and launcher that has written something."""
        with self._lock:
            return list(self._sources.values())

    def _print(self, source: Source, block: bytes) -> None:
        source.remember(block.rsplit(b"\n", 20)[-20:])
        if self._fold and source.has_to_fold(block):
            lines = source.fold(block.split(b"\n"))
            if not lines:
                return
            block = b"\n".join(lines)
        start = f"\n{source.prefix} "
        text = start + visible(block).replace("\n", start)
        if self._out.terminal:
            text = f"\n{wrap_lines(text[1:], self._out.size()[0])}"
        if self._colour:
            text = text.replace(start, f"\n{paint(source.prefix, source.style)} ")
        self._out.write(text[1:] + "\n")
