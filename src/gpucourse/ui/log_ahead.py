"""The logs that `fold` merges: the next line of each, and a window of the lines after it.

Each log is read a window ahead, no further, so memory does not grow with it. Ranks that wrote the same so far share one log.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property

from gpucourse.ui.loglines import visible_block

WINDOW = 200  # lines that each rank is read ahead, at least
_WINDOW_BYTES = 256 << 10  # the window has fewer lines if they are long
_BLOCK = 12 * WINDOW  # lines that are split, indexed and prepared for the screen together
LONGEST = 64 << 10  # a line without an end is broken here
_DIGITS = b"0123456789"


def label(ranks: Iterable[int]) -> str:
    """Return ranks as ranges: `[r0-3]`, `[r0,2-3]`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return f"[r{','.join(str(first) if first == last else f'{first}-{last}' for first, last in runs)}]"


@functools.lru_cache(maxsize=1024)
def label_of(ranks: tuple[int, ...]) -> str:
    """Return what is before a line of these ranks."""
    return label(ranks) + " "


class Places:
    """The places of each item in a list."""

    def __init__(self, items: Sequence[bytes]) -> None:
        self._items = items
        self._last = dict(zip(items, range(len(items)), strict=True))
        self.repeats = len(self._last) < len(items)
        self.first = dict(zip(reversed(items), reversed(range(len(items))), strict=True)) if self.repeats else self._last

    def find(self, item: bytes, at: int) -> int:
        """Return the first place of the item from `at` on; a place before `at` if there is none."""
        place = self.first.get(item, -1)
        return self._items.index(item, at) if place < at <= self._last.get(item, -1) else place


class Block:
    """Consecutive lines of one log. Each property is computed for all of them at once: a log may have a gigabyte."""

    def __init__(self, lines: list[bytes], ranks: tuple[int, ...]) -> None:
        self.lines = lines
        self._label = label_of(ranks)

    @cached_property
    def texts(self) -> list[str]:
        """Return each line as it may be shown, after its ranks."""
        return put_before(self._label, self.lines).split("\n")

    @cached_property
    def shapes(self) -> list[bytes]:
        """Return each line without its digits."""
        text = b"\n".join(self.lines)
        shapes = text.translate(None, _DIGITS)
        return self.lines if len(shapes) == len(text) else shapes.split(b"\n")

    @cached_property
    def places(self) -> Places:
        """Return the places of each line."""
        return Places(self.lines)

    @cached_property
    def shape_places(self) -> Places:
        """Return the places of each shape."""
        return self.places if self.shapes is self.lines else Places(self.shapes)


class Ahead:
    """The log of one rank, or of several that wrote the same so far: its next line, and a window of the lines after it, which
    are those of `block` from `at` to `end`.

    It is one of `logs`. When the ranks begin to differ, this log keeps the first of them and those that still agree with it;
    the others get logs of their own.
    """

    def __init__(self, sources: dict[int, Iterator[bytes]], logs: list[Ahead]) -> None:
        self.ranks = tuple(sources)
        self.line: bytes | None = None
        self.block = Block([], self.ranks)
        self.at = self.end = self.fill_at = 0
        self._sources, self._logs = sources, logs
        self._size = 0  # at least the bytes of the block
        self._waiting: bytes | None = None
        self._rest = b""
        self._ended = False
        self.begin()

    def advance(self, count: int) -> bool:
        """Move past the next `count` lines. Return whether the window had to be filled for that."""
        self.at += count
        if filled := self.at >= self.fill_at:
            self._fill()
        else:
            self.line = self.block.lines[self.at]
        return filled

    def read(self, count: int) -> list[bytes]:
        """Return the next `count` lines."""
        return self.block.lines[self.at : self.at + count]

    def distance(self, text: bytes) -> int | None:
        """Return how many lines ahead the text is, or None if it is not in the window."""
        place = self.block.places.find(text, self.at)
        return place - self.at if self.at <= place < self.end else None

    @property
    def shape(self) -> bytes:
        """Return the next line without its digits."""
        return self.block.shapes[self.at]

    def comes(self, shape: bytes, at: int) -> bool:
        """Return whether a line of that shape is in the window, from `at` on."""
        return at <= self.block.shape_places.find(shape, at) < self.end

    def begin(self) -> None:
        """Join `logs`, and fill the window with the lines that wait."""
        self._logs.append(self)
        self._fill()

    def _fill(self) -> None:
        while self.end < self.at + 3 * WINDOW and self._measure() < _WINDOW_BYTES and self._reach():
            pass
        count = self.end - self.at
        self.fill_at = self.at + max(count - WINDOW, (count + 1) // 2)
        self.line = self.block.lines[self.at] if count else None

    def _measure(self) -> int:
        """Return the bytes of the window; those of the whole block if they are few."""
        return self._size if self._size < _WINDOW_BYTES else sum(map(len, self.block.lines[self.at : self.end]))

    def _reach(self) -> bool:
        """Move the end of the window ahead, but not into another piece of the log. Return whether it moved."""
        if self.at + 3 * WINDOW > len(self.block.lines) and (
            self._waiting is not None or (self.end == len(self.block.lines) and self._has_more())
        ):
            self._cut_block()
        before, self.end = self.end, min(self.at + 3 * WINDOW, len(self.block.lines))
        return self.end > before

    def _cut_block(self) -> None:
        """Move lines that wait into the block, and drop those that were passed."""
        lines = self.block.lines[self.at :]
        more = (self._waiting or b"").split(b"\n", _BLOCK)
        rest = more.pop() if len(more) > _BLOCK else None
        self._size = sum(map(len, lines)) + len(self._waiting or b"") - len(rest or b"")
        self._waiting = rest
        self.block, self.at, self.end = Block(lines + more, self.ranks), 0, self.end - self.at

    def _has_more(self) -> bool:
        """Read pieces until one ends a line. Return whether there is one."""
        while self._waiting is None and not self._ended:
            pieces: dict[bytes | None, dict[int, Iterator[bytes]]] = {}
            for rank, source in self._sources.items():
                pieces.setdefault(next(source, None), {})[rank] = source
            others = [copy(self) for _ in pieces][1:]
            for log, (piece, sources) in zip([self, *others], pieces.items(), strict=True):
                log.take(piece, sources)
            for log in others:
                log.begin()
        return self._waiting is not None

    def take(self, piece: bytes | None, sources: dict[int, Iterator[bytes]]) -> None:
        """Take the next piece, which these sources share: the lines that it completes wait."""
        self.ranks, self._sources, self._ended = tuple(sources), sources, piece is None
        self.block = Block(self.block.lines, self.ranks)
        *lines, self._rest = (self._rest + (piece or b"")).rsplit(b"\n", 1)
        while len(self._rest) > LONGEST or (self._ended and self._rest):
            lines.append(self._rest[:LONGEST])
            self._rest = self._rest[LONGEST:]
        self._waiting = b"\n".join(lines) if lines else None


def put_before(words: str, lines: list[bytes]) -> str:
    """Return the lines as they may be shown, each after these words."""
    return words + visible_block(b"\n".join(lines)).replace("\n", f"\n{words}")
