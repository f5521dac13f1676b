"""The logs of all ranks read side by side: a line that several ranks wrote at the same place stands once, `[r0-3]`.

Each rank's log is read a window ahead, no further, so memory does not grow with the logs. At every step the ranks whose next
line nobody else is going to write soon say it; a line that others write a little later waits for them. Lines are the same
when they are equal to the last character: two losses that nearly agree are two lines. Lines that differ only in their numbers
wait for each other as well, so that they stand side by side, each with its own rank.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from gpucourse.ui.loglines import visible_block

WINDOW = 200  # lines that each rank is read ahead, at least
_WINDOW_BYTES = 256 << 10  # fewer lines, where they are long
LONGEST = 64 << 10  # a line without an end is broken here
_DIGITS = b"0123456789"


def fold(logs: Mapping[int, Iterable[bytes]]) -> Iterator[str]:
    """Folded lines, each with its ranks before it and a newline behind it, many at a time. `logs` holds the bytes of each
    rank's log, in pieces of any size."""
    ranks = [_Ahead(rank, _split(pieces)) for rank, pieces in sorted(logs.items())]
    while live := [rank for rank in ranks if rank.line is not None]:
        count = _count_rows(live)
        if count:
            yield _join_rows(live, count)
        filled = False
        for rank in live:
            filled |= rank.advance(count)
        while not filled:  # what comes next is for one after the other to say
            for group in _find_next(live):
                yield f"{_label_of(tuple([rank.rank for rank in group]))}{group[0].text}\n"
                for rank in group:
                    filled |= rank.advance(1)


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


class _Window:
    """Lines of one rank's log. What is asked of them is worked out for all at once: a log may have a gigabyte."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines

    @cached_property
    def texts(self) -> list[str]:
        """Each line as it may be shown."""
        return visible_block(b"\n".join(self.lines)).split("\n")

    @cached_property
    def shapes(self) -> list[bytes]:
        """Each line without its digits."""
        return b"\n".join(self.lines).translate(None, _DIGITS).split(b"\n")

    @cached_property
    def last(self) -> dict[bytes, int]:
        """Where each line is for the last time."""
        return {text: place for place, text in enumerate(self.lines)}

    @cached_property
    def last_shape(self) -> dict[bytes, int]:
        """Where each shape is for the last time."""
        return {shape: place for place, shape in enumerate(self.shapes)}


class _Ahead:
    """One rank's log: its next line, and a window of those after it."""

    def __init__(self, rank: int, source: Iterator[list[bytes]]) -> None:
        self.rank = rank
        self.line: bytes | None = None
        self.window = _Window([])
        self.at = self.fill_at = 0
        self._source = source
        self._waiting: list[bytes] = []
        self._taken = 0
        self._fill()

    def advance(self, count: int) -> bool:
        """Past the next lines. Whether the window had to be filled for that."""
        self.at += count
        if filled := self.at >= self.fill_at:
            self._fill()
        else:
            self.line = self.window.lines[self.at]
        return filled

    def read(self, count: int) -> list[bytes]:
        """The next lines."""
        return self.window.lines[self.at : self.at + count]

    @property
    def shape(self) -> bytes:
        """The next line without its digits."""
        return self.window.shapes[self.at]

    @property
    def text(self) -> str:
        """The next line as it may be shown."""
        return self.window.texts[self.at]

    def distance(self, text: bytes) -> int | None:
        """How many lines ahead the text is, or None if it is not in the window."""
        return self.window.lines.index(text, self.at) - self.at if self.window.last.get(text, -1) >= self.at else None

    def will_write(self, shape: bytes) -> bool:
        """Whether a line of that shape is in the window."""
        return self.window.last_shape.get(shape, -1) >= self.at

    def _fill(self) -> None:
        lines = self.window.lines[self.at :]
        size = sum(map(len, lines))
        while len(lines) < 3 * WINDOW and size < _WINDOW_BYTES and self._has_more():
            more = self._waiting[self._taken : self._taken + 3 * WINDOW - len(lines)]
            self._taken += len(more)
            lines += more
            size += sum(map(len, more))
        self.window, self.at = _Window(lines), 0
        self.fill_at = max(len(lines) - WINDOW, (len(lines) + 1) // 2)
        self.line = lines[0] if lines else None

    def _has_more(self) -> bool:
        while self._taken == len(self._waiting):
            if (lines := next(self._source, None)) is None:
                return False
            self._waiting, self._taken = lines, 0
        return True


def _count_rows(live: list[_Ahead]) -> int:
    """How many of the next lines can be said row by row, which is what `_find_next` would say of each: in a row every rank has
    the same line, or they have lines that differ in their numbers only and that no other rank is going to write soon."""
    count = min(rank.fill_at - rank.at for rank in live)
    columns = [rank.read(count) for rank in live]
    if all(column == columns[0] for column in columns):
        return count
    shapes = zip(*(rank.window.shapes[rank.at : rank.at + count] for rank in live), strict=True)
    count = next((place for place, row in enumerate(shapes) if not _is_one(row)), count)
    apart = [(place, row) for place, row in enumerate(zip(*columns, strict=True)) if place < count and not _is_one(row)]
    for place in range(len(live)):
        texts = {row[place] for _, row in apart}
        for rank in (rank for rank in live if rank is not live[place]):
            if common := rank.window.last.keys() & texts:
                count = min(count, next(at for at, row in apart if row[place] in common))
    return count


def _is_one(row: tuple[bytes, ...]) -> bool:
    """Whether all ranks write the same."""
    return row.count(row[0]) == len(row)


def _join_rows(live: list[_Ahead], count: int) -> str:
    """The next lines row by row, each with its ranks before it."""
    columns = [rank.read(count) for rank in live]
    together = _label_of(tuple([rank.rank for rank in live]))
    if all(column == columns[0] for column in columns):
        return together + visible_block(b"\n".join(columns[0])).replace("\n", f"\n{together}") + "\n"
    shown = [rank.window.texts[rank.at : rank.at + count] for rank in live]
    labelled = [map(_label_of((rank.rank,)).__add__, column) for rank, column in zip(live, shown, strict=True)]
    lines: list[str] = []
    for row, text, texts in zip(zip(*columns, strict=True), shown[0], zip(*labelled, strict=True), strict=True):
        if _is_one(row):
            lines.append(together + text)
        else:
            lines += texts
    return "\n".join(lines) + "\n"


def _find_next(live: list[_Ahead]) -> list[list[_Ahead]]:
    """The ranks whose next lines are to be said now, in groups that say the same line."""
    groups: dict[bytes, list[_Ahead]] = {}
    for rank in live:
        groups.setdefault(rank.line or b"", []).append(rank)
    if len(groups) == 1:
        return [live]
    waits: dict[bytes, int] = {}
    for text in groups:
        distances = [distance for rank in live if rank.line != text and (distance := rank.distance(text)) is not None]
        if distances:
            waits[text] = min(distances)
    ready = [group for text, group in groups.items() if text not in waits]
    if ready:
        return [group for group in ready if not _shape_comes(group, live)] or ready
    # Each waits for another: the ranks wrote the same lines in another order. Say the one that would wait longest.
    return [groups[max(waits, key=lambda item: waits[item])]]


def _shape_comes(group: list[_Ahead], live: list[_Ahead]) -> bool:
    """Whether a rank that is still elsewhere will write the next line of this group with other numbers."""
    shape = group[0].shape
    return any(rank.shape != shape and rank.will_write(shape) for rank in live)


def _split(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines that each piece ends."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        while len(rest) > LONGEST:
            lines.append(rest[:LONGEST])
            rest = rest[LONGEST:]
        yield lines
    if rest:
        yield [rest]
