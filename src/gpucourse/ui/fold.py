"""Merge the logs of all ranks into one: a line that several ranks wrote is shown once, marked with their numbers, such as
`[r0-3]`.

The next line of a rank is shown immediately, unless another rank will soon write an identical line. In that case, the line
waits for the other rank. Lines that differ only in their digits also wait for each other; they are then shown one below
another, each with its own rank.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping

from gpucourse.ui.loglines import visible

MAX_LINES = 300  # lines of each rank read ahead, so that memory does not grow with the logs
MAX_BYTES = 256 << 10  # bytes of these lines, if they are long
MAX_LINE = 64 << 10  # bytes; a line without an end is broken at this length
_DIGITS = b"0123456789"


def fold(logs: Mapping[int, Iterable[bytes]]) -> Iterator[str]:
    """Yield folded lines, each with its ranks before it and a newline after it. `logs` maps each rank to the pieces of its log,
    which may have any size."""
    seen_ahead: Counter[bytes] = Counter()
    live = [log for rank, pieces in sorted(logs.items()) if (log := _Log(rank, pieces, seen_ahead)).lines]
    while live:
        for group in _find_next(live, seen_ahead):
            yield f"{label(log.rank for log in group)} {visible(group[0].lines[0])}\n"
            for log in group:
                log.advance()
        live = [log for log in live if log.lines]


def label(ranks: Iterable[int]) -> str:
    """Return ranks as ranges: `[r0-3]`, `[r0,2-3]`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return f"[r{','.join(str(first) if first == last else f'{first}-{last}' for first, last in runs)}]"


class _Log:
    """The log of one rank: the lines read ahead, the positions of each of them, and the number of lines of each shape.

    `seen_ahead` counts the lines read ahead in all logs. The shape of a line is the line without its digits.
    """

    def __init__(self, rank: int, pieces: Iterable[bytes], seen_ahead: Counter[bytes]) -> None:
        self.rank = rank
        self.lines: deque[bytes] = deque()
        self.shapes: deque[bytes] = deque()
        self._unread = _split(pieces)
        self._seen_ahead = seen_ahead
        self._passed = self._size = 0
        self._places: defaultdict[bytes, deque[int]] = defaultdict(deque)
        self._shape_counts: Counter[bytes] = Counter()
        self._fill()

    def advance(self) -> None:
        """Move past the next line."""
        line, shape = self.lines.popleft(), self.shapes.popleft()
        self._passed += 1
        self._size -= len(line)
        places = self._places[line]
        places.popleft()
        if not places:
            del self._places[line]
        for counts, item in ((self._shape_counts, shape), (self._seen_ahead, line)):
            counts[item] -= 1
            if not counts[item]:
                del counts[item]
        self._fill()

    def distance(self, line: bytes) -> int | None:
        """Return how many lines ahead this line is: 0 for the next line, None if the line is not among those read ahead."""
        places = self._places.get(line)
        return places[0] - self._passed if places else None

    def has_shape(self, shape: bytes) -> bool:
        """Return whether a line of this shape is among those read ahead."""
        return shape in self._shape_counts

    def _fill(self) -> None:
        while len(self.lines) < MAX_LINES and self._size < MAX_BYTES and (line := next(self._unread, None)) is not None:
            shape = line.translate(None, _DIGITS)
            self._places[line].append(self._passed + len(self.lines))
            self.lines.append(line)
            self.shapes.append(shape)
            self._shape_counts[shape] += 1
            self._seen_ahead[line] += 1
            self._size += len(line)


def _split(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a log that arrives in pieces of any size."""
    partial = b""
    for piece in pieces:
        *lines, partial = (partial + piece).split(b"\n")
        yield from lines
        while len(partial) > MAX_LINE:
            yield partial[:MAX_LINE]
            partial = partial[MAX_LINE:]
    if partial:
        yield partial


def _find_next(live: list[_Log], seen_ahead: Counter[bytes]) -> list[list[_Log]]:
    """Return the logs whose next lines should be shown now, grouped by their next line."""
    groups: dict[bytes, list[_Log]] = {}
    for log in live:
        groups.setdefault(log.lines[0], []).append(log)
    if len(groups) == 1:
        return [live]
    waits = {
        line: min(distances)
        for line, group in groups.items()
        if seen_ahead[line] > len(group) and (distances := [distance for log in live if (distance := log.distance(line))])
    }
    if len(waits) == len(groups):  # the ranks wrote the same lines in different orders: show the line that would wait longest
        return [groups[max(waits, key=lambda line: waits[line])]]
    ready = [group for line, group in groups.items() if line not in waits]
    return [group for group in ready if not _shape_comes(group[0].shapes[0], live)] or ready


def _shape_comes(shape: bytes, logs: list[_Log]) -> bool:
    """Return whether a line of this shape is among the lines read ahead in a log whose next line has another shape."""
    return any(log.shapes[0] != shape and log.has_shape(shape) for log in logs)
