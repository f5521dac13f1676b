"""Show the progress of a long command: its stages, resources, nodes and logs as they happen.

On a terminal, finished lines scroll away above a small region that changes in place. In a pipe, every finished item is one
plain line.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.text import Text

from gpucourse.errors import Interrupted
from gpucourse.guard import guard
from gpucourse.model.event import Event, LogBytes, NodeEvent, Note, RankEvent, ResourceEvent, SilentRanks, Stage
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.loglines import MAX_LINE, Source, leave_out_tables
from gpucourse.ui.logpipe import MAX_PIECE, LogPipe
from gpucourse.ui.logscreen import LogScreen, draw_line
from gpucourse.ui.out import Out
from gpucourse.ui.progress import Progress
from gpucourse.ui.region import Region
from gpucourse.ui.styles import draw, line, wrap_line
from gpucourse.ui.text import clean_line, format_count
from gpucourse.units import format_seconds

TICK_S = 1 / 15  # the time between two looks at the logs
REDRAW_S = 1 / 8  # the time between two frames of the region if nothing scrolls above it
TAIL = 8  # lines of a log that are shown after a failure without a diagnosis
MAX_NAMED = 2  # up to this many logs are named one by one
MAX_FINISHED = 200  # finished lines kept for the recorded screen


class Live:
    """A `Watcher` that any thread may call, and a context manager. It never raises: after an error in its own code, it
    continues as if it wrote to a pipe.

    With `verbose`, it also shows the output of launchers and libraries, and every node's steps. With `brief`, it shows no logs,
    and removes lines about successes; `cancel`, `destroy` and series of runs use this. `log` returns the file to which errors
    in its own code are written.
    """

    def __init__(
        self,
        out: Out,
        *,
        colour: bool,
        moving: bool,
        quiet: bool = False,
        verbose: bool = False,
        brief: bool = False,
        log: Callable[[], Path] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out, self._colour, self._clock, self._log_file = out, colour, clock, log
        self._quiet, self._brief, self._fold = quiet, brief, not verbose
        self._moving = moving and not quiet
        self._region = Region(out, colour=colour)
        self._progress = Progress(at_once=not self._moving, verbose=verbose, columns=self._region.columns)
        self._screen = LogScreen(fold=self._fold)
        self._pipe = LogPipe(out, fold=self._fold, limit=MAX_LINE if out.terminal else MAX_PIECE)
        self._lock = threading.RLock()
        self._above: list[Text] = []
        self._kept: deque[tuple[float, Text]] = deque(maxlen=MAX_FINISHED)
        self._heard = self._drawn = clock()
        self._stop = threading.Event()
        self._printer: threading.Thread | None = None
        self._has_failed = False

    def __enter__(self) -> Self:
        if self._moving:
            self._printer = threading.Thread(target=self._tick_on, name="screen", daemon=True)
            self._printer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        try:
            if self._printer is not None:
                self._printer.join()
        finally:  # whatever happens, the terminal shows its cursor again
            self._printer = None
            has_failed = kind is not None and not issubclass(kind, (KeyboardInterrupt, Interrupted))
            with self._guard():
                with self._lock:
                    self._settle()
                    self._finish(self._progress.end_open_stages(self._clock(), has_failed=has_failed))
                self._last_frame()

    def __call__(self, event: Event) -> None:
        """Handle one event."""
        with self._guard():
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, LogBytes):
            self._log(event)
            return
        if isinstance(event, RankEvent):
            self._screen.note_end(event)
            return
        if isinstance(event, SilentRanks):
            self._screen.begin_run(event)
            return
        with self._lock:
            self._heard = self._clock()
            if isinstance(event, Stage):
                if event.seconds is not None:
                    self._settle()
                rows = self._progress.stage(event, self._heard)
                self._finish(rows if not self._brief or not event.ok else [])
            elif isinstance(event, ResourceEvent):
                self._finish(self._progress.resource(event, self._heard))
            elif isinstance(event, NodeEvent):
                self._finish(self._progress.node(event, self._heard))
            else:
                self._finish([self._note(event)], loud=event.level == "warning")

    def show_tail(self, node: str, rank: int | None) -> None:
        """Show the last lines of a rank, or of a node's launcher, after everything else. This also works after the block has
        ended."""
        source = next((s for s in self._sources() if s.node == node and s.rank == rank), None)
        if source is None or not source.last:
            return
        tail = list(source.last)[-TAIL:]
        lines = f"last {len(tail)} lines" if len(tail) > 1 else "the only line"
        writer = "the launcher" if rank is None else f"rank {rank}"
        rows = [line((f"{lines} of {writer} on {clean_line(node)}:", "bad"))]
        rows += [draw_line(source, raw) for _, raw in tail]
        rows.append(line((f"the whole log is in {source.file}", "dim")))
        with self._lock:
            self._finish(rows, loud=True)
        if self._printer is None:
            self._last_frame()

    def transcript(self, *, stages: int, logs: int) -> list[Text]:
        """Return what was shown, in order: the last `stages` finished lines, and the last `logs` lines of the logs."""
        logged = sorted(
            (
                (time_s, draw_line(source, raw))
                for source in self._sources()
                if not (self._fold and source.folds_all)
                for time_s, raw in (leave_out_tables(source.last) if self._fold else source.last)
            ),
            key=itemgetter(0),
        )
        with self._lock:
            stage_rows = list(self._kept)[-stages:]
        log_rows = logged[-logs:]
        if log_rows and (len(logged) > logs or any(source.more for source in self._sources())):
            log_rows.insert(0, (log_rows[0][0], line((f"{UNICODE.ellipsis} earlier lines are in logs/", "dim"))))
        return [row for _, row in sorted([*stage_rows, *log_rows], key=itemgetter(0))]

    def _log(self, event: LogBytes) -> None:
        if event.rank is not None:
            self._progress.note_output()
        if self._moving or self._quiet or self._brief:
            self._screen.feed(event)
        else:
            self._write(partial(self._pipe.feed, event))

    def _settle(self) -> None:
        """Show all log lines that have arrived, so that the next line of another kind comes after them."""
        self._write(self._pipe.close)
        self._finish_logs(self._screen.close(width=self._out.size()[0]))
        self._finish([] if self._brief else self._say_folded(), keep=False)

    def _say_folded(self) -> list[Text]:
        """Return a line that says how many lines of launchers and libraries were hidden since the last such line, and which
        files contain them. Return nothing if no lines were hidden."""
        sources = [source for source in self._sources() if source.folded]
        count = sum(source.folded for source in sources)
        for source in sources:
            source.folded = 0
        if not count:
            return []
        writers = "the launcher" if all(source.rank is None for source in sources) else "launchers and libraries"
        files = ", ".join(source.file for source in sources) if len(sources) <= MAX_NAMED else "logs/"
        return [line((f"{UNICODE.ellipsis} {format_count(count, 'line')} of {writers}: {files}", "dim"))]

    def _finish(self, rows: Sequence[Text], *, loud: bool = False, keep: bool = True) -> None:
        """Show lines that are final. `loud` lines are shown with --quiet as well."""
        if keep:
            now = time.monotonic()
            self._kept.extend((now, row) for row in rows)
        if self._out.terminal:
            rows = [wrap_line(row, self._out.size()[0]) for row in rows]
        if self._moving:
            self._above.extend(rows)
        elif rows and (loud or not self._quiet):
            self._write(partial(self._out.write, draw(*rows, colour=self._colour)))

    def _finish_logs(self, rows: Sequence[Text]) -> None:
        if self._moving and not self._brief:
            self._finish(rows, keep=False)

    def _tick_on(self) -> None:
        while not self._stop.wait(TICK_S) and not self._has_failed:
            with self._guard():
                self._tick()

    def _tick(self) -> None:
        with self._lock:
            self._finish_logs(self._screen.take(width=self._out.size()[0]))
            now = self._clock()
            if not self._above and now - self._drawn < REDRAW_S:
                return
            self._drawn = now
            rows = self._rows(now)
            scrolled_rows = self._take_scrolled_rows()
        self._write(
            partial(self._region.paint, scrolled_rows, rows)
        )  # without the lock, so that a stopped terminal blocks no other thread

    def _rows(self, now: float) -> list[Text]:
        height = max(1, min(self._out.size()[1] - 2, 30))
        rows = self._progress.rows(now, height - min(self._screen.count_statuses(), height // 2), self._region.columns)
        statuses = self._screen.statuses(height - len(rows))
        if not rows and not statuses and now - self._heard > 0.5:
            rows = [line((UNICODE.frame(now), "accent"), (f" {format_seconds(now - self._heard)}", "dim"))]
        return statuses + rows

    def _last_frame(self) -> None:
        if self._moving:
            with self._lock:
                scrolled_rows = self._take_scrolled_rows()
            self._write(partial(self._region.paint, scrolled_rows, []))

    def _take_scrolled_rows(self) -> list[Text]:
        scrolled_rows, self._above = self._above, []
        return scrolled_rows

    def _note(self, event: Note) -> Text:
        if event.level == "warning":
            return line((f"{UNICODE.error} {clean_line(event.text)}", "warn"))
        return line((f"{UNICODE.dot} ", "dim"), clean_line(event.text))

    def _sources(self) -> list[Source]:
        return self._screen.sources() + self._pipe.sources()

    def _guard(self) -> AbstractContextManager[None]:
        log = None if self._has_failed else self._log_file  # a failure on every line is logged once
        return guard("draw the live screen", log, self._fail)

    def _fail(self, warning: str) -> None:
        """Continue as if the output were a pipe, and say why once. Lines that were not painted yet are written
        without colour.
        """
        with self._lock:
            if self._has_failed:
                return
            self._has_failed, was_moving, self._moving = True, self._moving, False
            rows = [*self._take_scrolled_rows(), line(f"{UNICODE.error} {clean_line(warning)}")]
            if was_moving:
                self._write(self._region.clear)
            self._write(partial(self._out.write, "".join(f"{row.plain}\n" for row in rows)))

    def _write(self, writing: Callable[[], None]) -> None:
        """Write, and ignore errors such as a full disk behind a redirected stream. The stream then stays silent, but the work
        continues."""
        try:
            writing()
        except OSError:
            self._moving = self._moving and not self._out.closed
