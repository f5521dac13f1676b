"""Lines of a rank's log: where they come from, which of them are worth showing, and how they are shown."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.model.event import LogBytes
from gpucourse.ui.styles import RANK_STYLES
from gpucourse.ui.text import clean, wrap
from gpucourse.workspace.paths import RunPaths

MAX_LAST_LINES = 20  # lines kept of every rank, for the end of a run that failed
MAX_LINE = 2000  # bytes of one line on the screen; the file has the whole line
MIN_GAPS = 4  # a line with at least this many gaps (five columns) is a row of a table
_NUMBERED = re.compile(r"^node-?(\d+)$")
# Frames of libraries in a traceback, and the C++ stack that torch adds to some errors: neither is the learner's code.
_FRAME = re.compile(rb'\s*File "([^"]*)", line \d+')
_LIBRARY = re.compile(rb"[/\\](?:site|dist)-packages[/\\]|/lib/python3|^<frozen ")
_CPP_FRAME = re.compile(rb"frame #\d+: |Exception raised from \S+ at ")
TABLE_MARKER = b"[table of the result]"  # exercises/shared/bench.py writes it before a table that the result shows again
_NOTHING = re.compile(rb"\s*(?:rank \d+:|\[rank\d+\]:)?\s*")  # an empty line, even if each line begins with its rank
MARKERS = (TABLE_MARKER, b"-packages", b"/lib/python3", b"<frozen ", b"frame #", b"Exception raised from ")
_PREFIX = re.compile(r"(?: *[\d.]+ s  )?\[[\w ,-]+\] ")
_GAP = re.compile(r"\S {2,}(?=\S)")  # between two columns of a table
_RANK = re.compile(rb"(?:\x1b\[[0-9;]*m)*\[rank\d+\]:")
# Bytes that are shown unchanged: printable ASCII, the tab and the newline.
_HARMLESS = bytes({9, 10} | set(range(32, 127)))
_PERCENT = re.compile(rb"(\d{1,3})(?:\.\d+)? ?%")
_COUNT = re.compile(rb"(\d{1,12}) ?/ ?(\d{1,12})")


@dataclass
class Source:
    """One rank of one node, or the launcher of one node (`rank` is None).

    `missed`: how many lines were left out since the last line shown.
    `more`: whether more lines were written than `last` holds.
    `folded`: how many lines of a launcher or library were hidden, because they matter only if something goes wrong there.
    `code`, `ended`: the exit code of a rank that has ended, and the time of its end on the monotonic clock.
    `silent`: whether nothing has been printed yet.
    """

    node: str
    rank: int | None
    partial: bytes = b""
    partial_since: float = 0.0
    missed: int = 0
    more: bool = False
    folded: int = 0
    in_library: bool = False
    in_table: bool = False
    scheduled: bool = False
    silent: bool = False
    code: int | None = None
    ended: float = 0.0
    last: deque[tuple[float, bytes]] = field(default_factory=lambda: deque(maxlen=MAX_LAST_LINES))

    @property
    def prefix(self) -> str:
        """Return the prefix of every line from this source: `[n0 r1]`."""
        return f"[{short(self.node)} {'--' if self.rank is None else f'r{self.rank}'}]"

    @property
    def style(self) -> str:
        """Return the style of the prefix."""
        return "dim" if self.rank is None else f"rank{self.rank % RANK_STYLES}"

    @property
    def file(self) -> str:
        """Return the path of the whole log, relative to the run's folder."""
        return str(RunPaths(Path()).rank_log(self.node, self.rank))

    @property
    def has_failed(self) -> bool:
        """Return whether this is a rank that ended with an exit code other than 0."""
        return self.code not in {None, 0}

    @property
    def share_done(self) -> float:
        """Return the progress, from 0 to 1, that an unfinished line shows, such as `3%` or `3/100`. Return 0 if there is no
        such line, and 1 if the rank has succeeded."""
        if self.code == 0:
            return 1.0
        if (percent := _PERCENT.search(self.partial)) is not None:
            return min(int(percent[1]) / 100, 1.0)
        count = _COUNT.search(self.partial)
        return min(int(count[1]) / int(count[2]), 1.0) if count is not None and int(count[2]) else 0.0

    def has_to_fold(self, block: bytes) -> bool:
        """Return whether these bytes may contain a line that is not worth showing."""
        return self.folds_all or self.in_library or self.in_table or any(marker in block for marker in MARKERS)

    @property
    def folds_all(self) -> bool:
        """Return whether this source is a launcher, all of whose lines are hidden."""
        return self.rank is None and not self.scheduled

    def fold(self, lines: list[bytes]) -> list[bytes]:
        """Return the complete lines that are worth showing. Lines of launchers and libraries are only counted, and a table that
        the result shows is left out."""
        if not self.has_to_fold(b"\n".join(lines)):
            return lines
        lines = [text for text in lines if not self.is_of_table(text)]
        own_lines = [] if self.folds_all else [text for text in lines if not self._is_of_library(text)]
        self.folded += len(lines) - len(own_lines)
        return own_lines

    def is_of_table(self, text: bytes) -> bool:
        """Return whether the line belongs to a table, which extends from its marker to the next empty line."""
        was_in_table = self.in_table
        self.in_table = TABLE_MARKER in text or (was_in_table and _NOTHING.fullmatch(text) is None)
        return was_in_table or self.in_table

    def _is_of_library(self, text: bytes) -> bool:
        body = _RANK.sub(b"", text, count=1).lstrip(b" ") if not self.in_library else _RANK.sub(b"", text, count=1)
        if (frame := _FRAME.match(body)) is not None:
            self.in_library = _LIBRARY.search(frame[1]) is not None
            return self.in_library
        # The code of a frame is indented by four columns; torch puts a space after its prefix.
        self.in_library = self.in_library and body.lstrip(b" ") != body and body[:4].isspace()
        return self.in_library or _CPP_FRAME.match(body.lstrip()) is not None

    def remember(self, lines: list[bytes]) -> None:
        """Keep the newest of these complete lines."""
        now = time.monotonic()
        self.more = self.more or len(self.last) + len(lines) > MAX_LAST_LINES
        self.last.extend((now, bytes(text[: MAX_LINE + 1])) for text in lines[-MAX_LAST_LINES:])


class LineLimit:
    """Cuts the lines of one log after `limit` bytes, and says how much is left out. A line may arrive in several pieces."""

    def __init__(self, file: str, limit: int = MAX_LINE) -> None:
        self._file, self._most = file, limit
        self._length = 0  # the length so far of the line that has no newline yet

    def cut(self, piece: bytes) -> bytes:
        """Return the part of a piece that is shown. Each piece continues where the previous piece ended."""
        lines = piece.split(b"\n")
        if self._length + len(lines[0]) <= self._most and max(map(len, lines)) <= self._most:
            self._length = len(lines[-1]) + (self._length if len(lines) == 1 else 0)
            return piece
        pieces = [self._cut_line(lines[0])]
        for text in lines[1:]:
            pieces.append(self.end() + b"\n")
            pieces.append(self._cut_line(text))
        return b"".join(pieces)

    def end(self) -> bytes:
        """Return the note at the end of a long line that says how many bytes are left out, or nothing if the line is whole."""
        excess, self._length = self._length - self._most, 0
        return f" ... {excess:,} more bytes, whole line in {self._file}".encode() if excess > 0 else b""

    def _cut_line(self, text: bytes) -> bytes:
        room = max(0, self._most - self._length)
        self._length += len(text)
        return text[:room]


def leave_out_tables(lines: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Return these lines of one log without the tables that the result shows; a table extends from its marker to the next empty
    line."""
    source = Source("", None)
    return ((time_s, text) for time_s, text in lines if not source.is_of_table(text))


def source_of(sources: dict[tuple[str, int | None], Source], event: LogBytes) -> Source:
    """Return the source of this piece of a log. Add the source if this is its first piece."""
    key = (event.node, event.rank)
    if key not in sources:
        sources[key] = Source(*key, scheduled=event.scheduled)
    return sources[key]


def short(node: str) -> str:
    """Return the short form of a node's name for a prefix: `n0` for `node0`."""
    match = _NUMBERED.match(node)
    return f"n{match.group(1)}" if match else clean(node)[:16]


def visible(raw: bytes) -> str:
    """Return lines of a log in a form that is safe to show: without text that a carriage return overwrote, and with control
    characters escaped. This is fast if nothing has to be changed."""
    if not raw.translate(None, _HARMLESS):
        return raw.decode("ascii")
    raw = raw.replace(b"\r\n", b"\n").rstrip(b"\r")
    if b"\r" in raw:
        raw = b"\n".join([line.rstrip(b"\r").rsplit(b"\r", 1)[-1] for line in raw.split(b"\n")])
    return clean(raw.decode("utf-8", "replace"))


def wrap_lines(block: str, width: int | None) -> str:
    """Break lines of logs between words into rows of at most `width` columns, or not at all if `width` is None. Rows after the
    first are aligned after the prefix of their line, such as `[n0 r1] `. A row of a table is not broken."""
    if width is None:
        return block
    lines = ((text, match.end() if (match := _PREFIX.match(text)) else 0) for text in block.split("\n"))
    return "\n".join(row for text, cut in lines for row in _wrap_line(text, cut, width))


def _wrap_line(text: str, cut: int, width: int) -> list[str]:
    """Return the rows of a line that has a prefix of `cut` characters."""
    if len(text) <= width or len(_GAP.findall(text, cut)) >= MIN_GAPS:
        return [text]
    return wrap(text[cut:], width, first=text[:cut])
