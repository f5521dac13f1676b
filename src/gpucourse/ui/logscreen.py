"""Show logs on a terminal: a limited part of the ranks' output scrolls by, and the lines that are left out are counted.

The threads that read logs pass on pieces that are already on disk, and one printer shows a few lines fifteen times a second.
LINES limits the memory, and reading never waits for the terminal.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from gpucourse.model.event import LogBytes, RankEvent, SilentRanks
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.loglines import MAX_LINE, Source, source_of, visible
from gpucourse.ui.styles import line
from gpucourse.ui.text import pad, wrap

LINES = 2000  # lines of all ranks together that wait for the printer
MAX_LINES_PER_TICK = 40  # lines that one tick shows: six hundred a second are already more than anyone reads
BACKLOG = 600  # lines of one second of ticks: a burst of up to this many is shown whole, otherwise only its newest lines
WINDOW = 16 << 10  # only the end of a larger piece can reach the screen
HELD_S = 0.2  # after this time, a line without its newline is shown in place

_Key = tuple[str, int | None]  # a node and a rank


class _Waiting(NamedTuple):
    """A line that waits to be shown. If `text` is None, `missed` is the number of lines that were left out here."""

    source: Source
    text: bytes | None
    missed: int = 0


class LogScreen:
    """Keep a limited number of lines. Any thread may call `feed`; only the printer calls `take` and `statuses`. With `fold`,
    lines of launchers and libraries are counted, not shown."""

    def __init__(self, held_s: float = HELD_S, *, fold: bool = False) -> None:
        self._fold = fold
        self._held_s = held_s
        self._lock = threading.Lock()
        self._sources: dict[tuple[str, int | None], Source] = {}
        self._waiting: deque[_Waiting] = deque()
        self._silent: set[_Key] = set()  # ranks that have printed nothing yet

    def feed(self, event: LogBytes) -> None:
        """Accept a piece of a rank's log. Only the end of a large piece is processed; the lines before it are only counted."""
        data = event.data
        with self._lock:
            source = source_of(self._sources, event)
            self._silent.discard((event.node, event.rank))
            if len(data) > WINDOW:
                data = self._end_of(source, data)
            *complete, partial = (source.partial + data).split(b"\n")
            if partial and (complete or not source.partial):
                source.partial_since = time.monotonic()
            source.partial = _newest(partial)
            source.remember(complete)
            if self._fold:
                complete = source.fold(complete)
            self._waiting.extend(_Waiting(source, bytes(text[: MAX_LINE + 1])) for text in complete)
            if len(self._waiting) > LINES:
                self._thin(LINES // 2)

    def take(self, limit: int = MAX_LINES_PER_TICK, *, width: int | None = None) -> list[Text]:
        """Return the next lines to show, broken between words into rows of at most `width` columns, or unbroken if `width` is
        None. If more than BACKLOG lines are waiting, return the newest, and only count the others."""
        with self._lock:
            if len(self._waiting) > BACKLOG:
                self._thin(limit)
            batch = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
            lines: list[Text] = []
            for waiting in batch:
                waiting.source.missed += waiting.missed
                if waiting.text is not None:
                    lines.extend(_gap(waiting.source, width))
                    lines.append(draw_line(waiting.source, waiting.text, width))
            if not self._waiting:
                lines.extend(row for source in self._sources.values() for row in _gap(source, width))
        return lines

    def close(self, *, width: int | None = None) -> list[Text]:
        """Return all lines that are still waiting, including those without a newline, in the form that `take` returns."""
        with self._lock:
            for source in self._sources.values():
                if source.partial:
                    source.remember([source.partial])
                    lines = source.fold([source.partial]) if self._fold else [source.partial]
                    self._waiting.extend(_Waiting(source, text) for text in lines)
                    source.partial = b""
        return self.take(BACKLOG, width=width)

    def begin_run(self, event: SilentRanks) -> None:
        """Prepare to follow another run, and forget how the ranks of an earlier run ended."""
        with self._lock:
            self._silent = {(node, rank) for node, ranks in event.ranks.items() for rank in ranks}
            for source in self._sources.values():
                source.code = None

    def note_end(self, event: RankEvent) -> None:
        """Record that a rank has ended. A rank that failed is shown above the progress bars of the others."""
        with self._lock:
            source = self._sources.setdefault((event.node, event.rank), Source(event.node, event.rank))
            source.code, source.ended = event.code, time.monotonic()
            self._silent.discard((event.node, event.rank))

    def count_statuses(self) -> int:
        """Return how many lines `statuses` would return without a limit."""
        with self._lock:
            return len(self._list_held())

    def statuses(self, limit: int = LINES) -> list[Text]:
        """Return one line for each rank with an unfinished line, such as a progress bar, and for each rank that failed or has
        printed nothing yet. They are in the order of the ranks.

        If there are more than `limit` lines, return those that need most attention, and say how many are left out. Ranks that
        failed come first, then those with the least progress. If most ranks are silent, presumably only a few are meant to
        print, so the silent ranks come last.
        """
        with self._lock:
            sources, count = self._list_held(), limit
            if len(sources) > limit:
                printing_count = sum(source.rank is not None for source in self._sources.values())
                silent_are_worst = len(self._silent) <= printing_count
                sources.sort(key=lambda source: _rate(source, silent_are_worst=silent_are_worst))
                count = max(0, limit - 1)
            width = max((cell_len(source.prefix) for source in sources[:count]), default=0)
            rows = [self._render_status(source, width) for source in sources[:count]]
            if count < len(sources) and limit:
                rows.append(line((f"+{len(sources) - count} more", "dim")))
            return rows

    def _list_held(self) -> list[Source]:
        """Return the sources with an unfinished line. If there are any, also return the ranks that failed or have printed
        nothing."""
        latest, sources = time.monotonic() - self._held_s, list(self._sources.values())
        if not any(self._is_held(source, latest) for source in sources):
            return []
        visible_sources = [source for source in sources if source.has_failed or self._is_held(source, latest)]
        return sorted([*visible_sources, *(Source(*key, silent=True) for key in self._silent)], key=_place)

    def _is_held(self, source: Source, latest: float) -> bool:
        folded = self._fold and source.folds_all
        return bool(source.partial) and source.partial_since <= latest and not folded

    def _render_status(self, source: Source, width: int) -> Text:
        prefix = (pad(source.prefix, width), source.style)
        failure = (f"{UNICODE.bad} exit code {source.code} ", "bad") if source.has_failed else ""
        text = ("has printed nothing yet", "dim") if source.silent else visible(source.partial[:MAX_LINE])
        return line(prefix, " ", failure, text)

    def sources(self) -> list[Source]:
        """Return every rank and launcher that has written something or ended."""
        with self._lock:
            return list(self._sources.values())

    def _end_of(self, source: Source, data: bytes) -> bytes:
        """Return the whole lines in the last WINDOW bytes, and count the lines before them as missed."""
        cut = data.find(b"\n", len(data) - WINDOW) + 1
        if cut == 0:
            cut = max(data.rfind(b"\n") + 1, len(data) - WINDOW)
        missed = data.count(b"\n", 0, cut)
        if missed:
            source.partial = b""
            self._waiting.append(_Waiting(source, None, missed))
        return data[cut:]

    def _thin(self, count: int) -> None:
        """Keep the newest lines of each rank. Every rank has a fair share, so that a flood from one rank does not displace the
        lines of another."""
        room = _shares(Counter((waiting.source.node, waiting.source.rank) for waiting in self._waiting), count)
        newest: deque[_Waiting] = deque()
        for waiting in reversed(self._waiting):
            source = waiting.source
            if room[source.node, source.rank]:
                room[source.node, source.rank] -= 1
                newest.appendleft(waiting)
            else:
                source.missed += waiting.missed or 1
        self._waiting = newest


def _gap(source: Source, width: int | None) -> list[Text]:
    missed, source.missed = source.missed, 0
    if not missed:
        return []
    amount = "1 line" if missed == 1 else f"{missed:,} lines"
    return [_draw_text(source, f"{UNICODE.ellipsis} {amount} not shown; see {source.file}", width, style="dim")]


def draw_line(source: Source, raw: bytes, width: int | None = None) -> Text:
    """Return a line of a log with its prefix, in rows of at most `width` columns. A very long line is cut off."""
    suffix = f" {UNICODE.ellipsis} whole line in {source.file}" if len(raw) > MAX_LINE else ""
    return _draw_text(source, visible(raw[:MAX_LINE]), width, suffix=suffix)


def _draw_text(source: Source, text: str, width: int | None, *, style: str = "", suffix: str = "") -> Text:
    """Return the text as rows, aligned after its prefix, followed by the suffix. A word that is wider than a row is not broken,
    so that paths can be copied."""
    prefix = f"{source.prefix} "
    rows = "\n".join(wrap(text, width, first=" " * cell_len(prefix)))
    return line((prefix, source.style), (rows[cell_len(prefix) :], style), (suffix, "dim"))


def _place(source: Source) -> tuple[bool, int, str]:
    """Return the key that sorts ranks by number, launchers last."""
    return source.rank is None, source.rank or 0, source.node


def _rate(source: Source, *, silent_are_worst: bool) -> tuple[bool, float, int, tuple[bool, int, str]]:
    """Return a sort key that puts the worst sources first. Progress is counted in steps of a twentieth, so that ranks with
    nearly equal progress keep their places."""
    progress = int(source.share_done * 20) if not source.silent else -1 if silent_are_worst else 21
    return not source.has_failed, source.ended if source.has_failed else 0.0, progress, _place(source)


def _shares(counts: Counter[_Key], count: int) -> dict[_Key, int]:
    """Return how many lines each rank keeps, `count` in total. A rank with few lines keeps all of them."""
    shares: dict[_Key, int] = {}
    for number, (key, line_count) in enumerate(sorted(counts.items(), key=lambda item: item[1])):
        shares[key] = min(line_count, (count - sum(shares.values())) // (len(counts) - number))
    return shares


def _newest(partial: bytes) -> bytes:
    """Return the text that an unfinished line shows now, or only its end if it is very long."""
    body = partial.rstrip(b"\r")
    return partial[body.rfind(b"\r") + 1 :][-MAX_LINE:]
