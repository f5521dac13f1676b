"""Keep the served page up to date: build it again when a run begins or ends or when answers change, and send events to each
open page."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from gpucourse.context import Context
from gpucourse.learning.pages.serve import find_stamp
from gpucourse.model.record import RunRecord
from gpucourse.ui.page.build import build_runs
from gpucourse.ui.page.folder import update_folder
from gpucourse.ui.page.logs import LogTail
from gpucourse.ui.page.markup import File
from gpucourse.ui.page.run_pages import describe_run_state, place_of
from gpucourse.units import seconds_since
from gpucourse.workspace import runs

LOOK_S = 0.5
"""The interval in seconds at which the files of the workspace are examined, however many pages are open."""


class LivePages:
    """The pages of one workspace in a folder. They are not updated while no page is open."""

    def __init__(
        self, context: Context, folder: Path, build_all: Callable[[], Iterable[File]], *, look_s: float = LOOK_S
    ) -> None:
        self._context, self._folder, self._build_all = context, folder, build_all
        self._look_s, self._next_look = look_s, 0.0
        self._lock = threading.Lock()
        self._under_way = self._list_under_way()
        self._built = self._seen = self._list_times()

    def follow(self, place: str, stamp: str) -> Iterator[bytes]:
        """Yield, without end, what has changed since the last look, for a browser that shows the page at `place`.

        The changes are server-sent events; an item may be empty. `stamp` is the stamp of the page that the browser shows.
        """
        run_id = PurePosixPath(place).stem
        shown_states: set[tuple[str, str]] | None = None
        tail: LogTail | None = None
        while True:
            self._look()
            records = self._under_way
            events = []
            if (states := _list_states(records)) != shown_states:
                shown_states = states
                events.append(_make_event("runs", [_describe_run(record) for record in records.values()]))
            if (record := records.get(run_id)) is not None:
                count = len(tail.processes) if tail else 0
                if is_first := tail is None:
                    tail = LogTail(record.id, runs.files_of(self._context.paths, record))
                lines = tail.begin() if is_first else tail.read()
                if lines or is_first:
                    processes = tail.processes[count:]
                    events.append(_make_event("logs", {"first": is_first, "processes": processes, "lines": lines}))
            elif (newest := find_stamp(self._folder / place)) not in {stamp, ""}:
                stamp = newest
                events.append(_make_event("page", stamp))
            yield b"".join(events)

    def _look(self) -> None:
        """Write the pages that changed, unless the event stream of another page has just done so."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if time.monotonic() >= self._next_look:
                self._next_look = time.monotonic() + self._look_s
                with self._context.guard("write the page again"):
                    self._write_runs()
                    self._write_all()
        finally:
            self._lock.release()

    def _write_runs(self) -> None:
        """Write the list of runs, and the pages of the runs whose state changed. This is quick, so a page shows immediately
        how its run ended.
        """
        records = self._list_under_way()
        changed_ids = {run_id for run_id, _ in _list_states(records) ^ _list_states(self._under_way)}
        self._under_way = records  # before writing, so that a page that cannot be written is not tried again at every look
        if changed_ids:
            update_folder(self._folder, build_runs(self._context, changed_ids))

    def _write_all(self) -> None:
        """Build all pages again after files have changed, as soon as they stop changing."""
        times = self._list_times()
        if times != self._built and times == self._seen:
            self._built = times
            update_folder(self._folder, self._build_all())
        self._seen = times

    def _list_under_way(self) -> dict[str, RunRecord]:
        return {record.id: record for record in runs.list_unfinished(self._context.paths)}

    def _list_times(self) -> dict[Path, int]:
        """Return the modification time, in ns, of each file that the pages are made of. Runs that are under way are left
        out."""
        paths = self._context.paths
        ended_folders = [folder for folder in runs.list_folders(paths) if folder.name not in self._under_way]
        further_paths = (paths.deployments, paths.hints, paths.ledger, paths.quiz, paths.receipts)
        times = {}
        for path in (*ended_folders, *paths.deliverables_root.glob("*/*"), *further_paths):
            try:
                times[path] = path.stat().st_mtime_ns
            except OSError:  # the file does not exist yet, or has just been removed
                continue
        return times


def _list_states(records: Mapping[str, RunRecord]) -> set[tuple[str, str]]:
    return {(record.id, record.state) for record in records.values()}


def _describe_run(record: RunRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "subject": record.subject,
        "state": record.state,
        "progress": describe_run_state(record),
        "place": place_of(record),
        "seconds": round(seconds_since(record.created), 1),
    }


def _make_event(name: str, data: object) -> bytes:
    """Return a server-sent event. Its data are JSON in one line, so no text in them ends the event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
