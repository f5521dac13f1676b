"""The logs of all ranks read side by side: a line that several ranks wrote at the same place stands once, `[r0-3]`.

Each rank's log is read a window ahead, no further, so memory does not grow with the logs. At every step the ranks whose next
line nobody else is going to write soon say it; a line that others write a little later waits for them. Lines are the same
when they are equal to the last character: two losses that nearly agree are two lines. Lines that differ only in their numbers
wait for each other as well, so that they stand side by side, each with its own rank.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

from gpucourse.ui.loglines import visible

WINDOW = 200  # lines that each rank is read ahead, at least
_WINDOW_BYTES = 256 << 10  # fewer lines, where they are long
LONGEST = 64 << 10  # a line without an end is broken here
_DIGITS = b"0123456789"


def fold(logs: Mapping[int, Iterable[bytes]]) -> Iterator[str]:
    """Folded lines, each with its ranks before it. `logs` holds the bytes of each rank's log, in pieces of any size."""
    ranks = [_Ahead(rank, _lines(pieces)) for rank, pieces in sorted(logs.items())]
    while live := [rank for rank in ranks if rank.line is not None]:
        ended = False
        while not ended:
            for text, group in _next(live):
                prefix = _label_of(tuple([rank.rank for rank in group])) if len(group) > 1 else group[0].label
                yield prefix + visible(text)
                for rank in group:
                    rank.advance()
                    ended = ended or rank.line is None


def label(ranks: Iterable[int]) -> str:
    """Ranks as ranges: `[r0-3]`, `[r0,2-3]`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return f"[r{','.join(str(first) if first == last else f'{first}-{last}' for first, last in runs)}]"


@functools.lru_cache(maxsize=1024)
def _label_of(ranks: tuple[int, ...]) -> str:
    return label(ranks) + " "


class _Ahead:
    """One rank's log: its next line, and a window of those after it. The window is filled many lines at a time, and where each
    line and each shape (a line without its digits) stands last in it is looked up in tables: a log may have a gigabyte."""

    def __init__(self, rank: int, source: Iterator[bytes]) -> None:
        self.rank, self.label = rank, _label_of((rank,))
        self.line: bytes | None = None
        self._source = source
        self._lines: list[bytes] = []
        self._shapes: list[bytes] = []
        self._last: dict[bytes, int] = {}
        self._last_shape: dict[bytes, int] = {}
        self._at = self._fill_at = 0
        self._fill()

    def advance(self) -> None:
        """Past the next line."""
        self._at += 1
        if self._at >= self._fill_at:
            self._fill()
        else:
            self.line, self.shape = self._lines[self._at], self._shapes[self._at]

    def distance(self, text: bytes) -> int | None:
        """How many lines ahead the text is, or None if it is not in the window."""
        return self._lines.index(text, self._at) - self._at if self._last.get(text, -1) >= self._at else None

    def will_write(self, shape: bytes) -> bool:
        """Whether a line of that shape is in the window."""
        return self._last_shape.get(shape, -1) >= self._at

    def _fill(self) -> None:
        lines = self._lines[self._at :]
        size = sum(map(len, lines))
        while len(lines) < 3 * WINDOW and size < _WINDOW_BYTES and (text := next(self._source, None)) is not None:
            lines.append(text)
            size += len(text)
        self._lines, self._at = lines, 0
        self._shapes = b"\n".join(lines).translate(None, _DIGITS).split(b"\n") if lines else []
        self._last = {text: place for place, text in enumerate(lines)}
        self._last_shape = {shape: place for place, shape in enumerate(self._shapes)}
        self.shape = self._shapes[0] if lines else b""
        self._fill_at = max(len(lines) - WINDOW, (len(lines) + 1) // 2)
        self.line = lines[0] if lines else None


def _next(live: list[_Ahead]) -> list[tuple[bytes, list[_Ahead]]]:
    """The lines to say now, each with the ranks whose next line it is."""
    first = live[0].line
    if first is not None and all(rank.line == first for rank in live):
        return [(first, live)]
    groups: dict[bytes, list[_Ahead]] = {}
    for rank in live:
        groups.setdefault(rank.line or b"", []).append(rank)
    waits: dict[bytes, int] = {}
    for text in groups:
        distances = [distance for rank in live if rank.line != text and (distance := rank.distance(text)) is not None]
        if distances:
            waits[text] = min(distances)
    ready = [item for item in groups.items() if item[0] not in waits] if waits else list(groups.items())
    if ready:
        return [item for item in ready if not _shape_comes(item[1], live)] or ready
    # Each waits for another: the ranks wrote the same lines in another order. Say the one that would wait longest.
    text = max(waits, key=lambda item: waits[item])
    return [(text, groups[text])]


def _shape_comes(group: list[_Ahead], live: list[_Ahead]) -> bool:
    """Whether a rank that is still elsewhere will write the next line of this group with other numbers."""
    shape = group[0].shape
    return any(rank.shape != shape and rank.will_write(shape) for rank in live)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *complete, rest = (rest + piece).split(b"\n")
        yield from complete
        while len(rest) > LONGEST:
            yield rest[:LONGEST]
            rest = rest[LONGEST:]
    if rest:
        yield rest
