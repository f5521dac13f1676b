"""The logs of all ranks read side by side: a line that several ranks wrote at the same place stands once, `[r0-3]`.

Each rank's log is read a window ahead, no further, so memory does not grow with the logs. At every step the ranks whose next
line nobody else is going to write soon say it; a line that others write a little later waits for them. Lines are the same
when they are equal to the last character: two losses that nearly agree are two lines. Lines that differ only in their numbers
wait for each other as well, so that they stand side by side, each with its own rank.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

from gpucourse.ui.loglines import visible

WINDOW = 200  # lines that each rank is read ahead
LONGEST = 64 << 10  # a line without an end is broken here
_NUMBERS = re.compile(rb"\d+")


def fold(logs: Mapping[int, Iterable[bytes]]) -> Iterator[str]:
    """Folded lines, each with its ranks before it. `logs` holds the bytes of each rank's log, in pieces of any size."""
    ranks = [_Ahead(rank, _lines(pieces)) for rank, pieces in sorted(logs.items())]
    while live := [rank for rank in ranks if rank.lines]:
        for text, group in _next(live):
            yield f"{label([rank.rank for rank in group])} {visible(text)}"
            for rank in group:
                rank.advance()


def label(ranks: Iterable[int]) -> str:
    """Ranks as ranges: `[r0-3]`, `[r0,2-3]`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return f"[r{','.join(str(first) if first == last else f'{first}-{last}' for first, last in runs)}]"


class _Ahead:
    """One rank's log with a window of its next lines; how often each stands in it, and each shape (a line without numbers)."""

    def __init__(self, rank: int, source: Iterator[bytes]) -> None:
        self.rank = rank
        self.lines: deque[bytes] = deque()
        self.coming: Counter[bytes] = Counter()
        self.shapes: Counter[bytes] = Counter()
        self._source = source
        self._fill()

    def advance(self) -> None:
        """Past the next line."""
        gone = self.lines.popleft()
        for counter, key in ((self.coming, gone), (self.shapes, _shape(gone))):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]
        self._fill()

    def distance(self, text: bytes) -> int | None:
        """How many lines ahead the text stands, or None where it is not in the window."""
        return self.lines.index(text) if text in self.coming else None

    def _fill(self) -> None:
        while len(self.lines) < WINDOW and (text := next(self._source, None)) is not None:
            self.lines.append(text)
            self.coming[text] += 1
            self.shapes[_shape(text)] += 1


def _next(live: list[_Ahead]) -> list[tuple[bytes, list[_Ahead]]]:
    """The lines to say now, each with the ranks whose next line it is."""
    groups: dict[bytes, list[_Ahead]] = {}
    for rank in live:
        groups.setdefault(rank.lines[0], []).append(rank)
    if len(groups) == 1:
        return list(groups.items())
    waits: dict[bytes, int] = {}
    for text, group in groups.items():
        distances = [distance for rank in live if rank not in group if (distance := rank.distance(text)) is not None]
        if distances:
            waits[text] = min(distances)
    ready = [(text, group) for text, group in groups.items() if text not in waits]
    if ready:
        return [item for item in ready if not _shape_comes(*item, live)] or ready
    # Each waits for another: the ranks wrote the same lines in another order. Say the one that would wait longest.
    text = max(waits, key=lambda item: waits[item])
    return [(text, groups[text])]


def _shape_comes(text: bytes, group: list[_Ahead], live: list[_Ahead]) -> bool:
    """Whether a rank that is still elsewhere will write this line with other numbers."""
    shape = _shape(text)
    return any(rank not in group and shape in rank.shapes and _shape(rank.lines[0]) != shape for rank in live)


def _shape(text: bytes) -> bytes:
    return _NUMBERS.sub(b"#", text)


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
