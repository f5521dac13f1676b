"""Read the logs of a run from disk, for `logs`: all of them, a part, one rank, or new lines as they arrive.

A log, or a single line of it, may be a gigabyte long. So only a few pieces of `CHUNK` bytes are in memory at a time, and the
text before the selected part is not read.
"""

from __future__ import annotations

import heapq
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from pathlib import Path

from gpucourse.errors import DamagedFile, UsageError
from gpucourse.model.event import LogBytes, Watcher
from gpucourse.model.record import RunRecord
from gpucourse.workspace import runs
from gpucourse.workspace.paths import WorkspacePaths

CHUNK = 1 << 18
"""The number of bytes that are read at a time. A line of more than twice this length is passed on in parts."""


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """The selected part of each log. The fields apply in this order:

    `grep`: select the lines that match.
    `since`: of these, select the lines of the last `since` seconds, counted back from the end of the run, or from now if it is
    still running.
    `tail`: of these, select the last `tail` lines.
    """

    tail: int | None = None
    since: float | None = None
    grep: re.Pattern[bytes] | None = None


EVERYTHING = LogPart()


@dataclass(frozen=True, kw_only=True)
class StoredLog:
    """The log of one rank (of a launcher if `rank` is None) on disk, and its selected part.

    `times`: the file with the arrival times of its pieces.
    `newest`: the time from which `part.since` counts back, in seconds since 1970.
    """

    node: str
    rank: int | None
    path: Path
    times: Path
    part: LogPart = EVERYTHING
    newest: float = 0.0

    @cached_property
    def begin(self) -> int:
        """Return the position of the first selected byte."""
        begin = 0 if self.part.since is None else self._find_moment(self.newest - self.part.since)
        if self.part.tail is None:
            return begin
        remaining, start = self.part.tail, self.path.stat().st_size
        for place, line in _read_backwards(self.path) if remaining else ():
            if place < begin:
                break
            if self._choose(line):
                start, remaining = place, remaining - 1
            if not remaining:
                break
        return start

    def read(self) -> Iterator[bytes]:
        """Yield the selected part in pieces of whole lines. A line that is longer than a piece is split."""
        yield from filter(None, map(self._choose, _read_lines(self.path, self.begin)))

    def read_timed(self, start_s: float) -> Iterator[tuple[float, StoredLog, bytes]]:
        """Yield the selected part as (seconds since `start_s`, this log, lines that arrived together).

        Lines that arrived after the last recorded time get that time.
        """
        times = self._read_times()
        place, end, at, choose = self.begin, 0, 0.0, self._choose
        for block in _read_lines(self.path, self.begin):
            start = 0
            while end < place + len(block):
                if (cut := block.rfind(b"\n", start, max(end - place, start)) + 1) > start:
                    if piece := choose(block[start:cut]):
                        yield at, self, piece
                    start = cut
                end, moment = next(times, (sys.maxsize, start_s))
                at = max(at, moment - start_s)
            if piece := choose(block[start:]):
                yield at, self, piece
            place += len(block)

    def find_newest(self) -> float | None:
        """Return when the last piece arrived, or None if no time is recorded."""
        last = next(_read_backwards(self.times), None) if self.times.is_file() else None
        return None if last is None else self._parse_time(last[1])[1]

    def _choose(self, block: bytes) -> bytes:
        """Return the selected lines of the block."""
        if (pattern := self.part.grep) is None:
            return block
        return b"".join(line + b"\n" for line in block.removesuffix(b"\n").split(b"\n") if pattern.search(line))

    def _find_moment(self, moment: float) -> int:
        """Return the position of the first line that was complete at `moment` or later."""
        if not self.times.is_file():
            return 0
        for _, note in _read_backwards(self.times):
            end, at = self._parse_time(note)
            if at < moment:
                place, line = next(_read_backwards(self.path, end), (0, b""))
                return place + len(line) if line.endswith(b"\n") else place
        return 0

    def _read_times(self) -> Iterator[tuple[int, float]]:
        """Yield (bytes of the log that had arrived, time), starting with the first selected byte.

        Of several entries with the same time, only the last is yielded.
        """
        if not self.times.is_file():
            return
        first = 0
        for place, note in _read_backwards(self.times) if self.begin else ():
            if self._parse_time(note)[0] <= self.begin:
                first = place + len(note)
                break
        for block in _read_lines(self.times, first):
            ends = {moment: end for end, moment in map(self._parse_time, block.splitlines())}
            yield from ((end, moment) for moment, end in ends.items())

    def _parse_time(self, note: bytes) -> tuple[int, float]:
        try:
            end, moment = note.split()
            return int(end), float(moment)
        except ValueError as error:
            raise DamagedFile(self.times, "a line is not a size and a time") from error


def select_logs(
    paths: WorkspacePaths, record: RunRecord, rank: int | None = None, part: LogPart = EVERYTHING
) -> list[StoredLog]:
    """Return the logs of a run (or of one rank), each with its selected part. Ranks are in order, and launchers last.

    Raises UsageError if the rank is unknown, or if `part.since` is given but the arrival times were not recorded.
    """
    files = runs.files_of(paths, record)
    logs = [
        StoredLog(node=node, rank=number, path=path, times=files.rank_times(node, number), part=part)
        for (node, number), path in _list_files(paths, record, rank).items()
    ]
    if part.since is None:
        return logs
    moments = [moment for log in logs if (moment := log.find_newest()) is not None]
    if logs and not moments:
        raise UsageError(
            f"run {record.id} has no record of when its lines arrived", hint=f"gpucourse logs {record.id} --tail 20"
        )
    newest = max(moments, default=0.0) if record.has_ended else time.time()
    return [replace(log, newest=newest) for log in logs]


def merge_by_time(record: RunRecord, logs: list[StoredLog]) -> Iterator[tuple[float, StoredLog, bytes]]:
    """Yield (seconds since the run was created, the log, lines that arrived together) in the order of arrival.

    All times are from this computer's clock. Lines that were collected later have the time at which they were collected.
    """
    start_s = datetime.fromisoformat(record.created).timestamp()
    return heapq.merge(*(log.read_timed(start_s) for log in logs), key=itemgetter(0))


def _list_files(paths: WorkspacePaths, record: RunRecord, rank: int | None) -> dict[tuple[str, int | None], Path]:
    ordered = runs.files_of(paths, record).all_logs()
    if rank is None:
        return ordered
    files = {key: path for key, path in ordered.items() if key[1] == rank}
    if not files and record.has_ended:
        if rank < record.rank_count > record.world_size > 0:
            process = rank * record.world_size // record.rank_count
            raise UsageError(
                f"rank {rank} of run {record.id} has no log of its own: process {process} forked it",
                hint=f"the log of that process: gpucourse logs {record.id} --rank {process}",
            )
        ranks = ", ".join(str(key[1]) for key in ordered if key[1] is not None)
        raise UsageError(f"run {record.id} has no log of rank {rank}", hint=f"ranks with a log: {ranks or 'none'}")
    return files


def _read_lines(path: Path, begin: int) -> Iterator[bytes]:
    """Yield the file from `begin` on, in pieces that end with a whole line. A line of more than `CHUNK` bytes is split."""
    with path.open("rb") as file:
        file.seek(begin)
        remainder = b""
        while chunk := file.read(CHUNK):
            block = remainder + chunk
            cut = block.rfind(b"\n") + 1 or (len(block) if len(block) > CHUNK else 0)
            if cut:
                yield block[:cut]
            remainder = block[cut:]
        if remainder:
            yield remainder


def _read_backwards(path: Path, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of the file, or of its first `end` bytes, from the last to the first, as (position, line).

    Each line includes its newline. A line of more than `CHUNK` bytes is split.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        place = size if end is None else min(end, size)
        remainder = b""
        while place:
            step = min(CHUNK, place)
            place -= step
            file.seek(place)
            block = file.read(step) + remainder
            # The text before the cut belongs to a line that begins in an earlier block.
            cut = block.find(b"\n") + 1 if place else 0
            if place and cut in {0, len(block)}:
                cut = len(block) if len(block) <= CHUNK else 0
            at = len(block)
            while at > cut:
                begin = block.rfind(b"\n", cut, at - 1) + 1 or cut
                yield place + begin, block[begin:at]
                at = begin
            remainder = block[:cut]


class Tail:
    """Follow a run's logs: pass each new line to a watcher, beginning in each log where `part` begins."""

    def __init__(
        self, paths: WorkspacePaths, watch: Watcher, record: RunRecord, rank: int | None, part: LogPart = EVERYTHING
    ) -> None:
        self.paths, self.watch, self.record, self.rank = paths, watch, record, rank
        self.offsets = {log.path: log.begin for log in select_logs(paths, record, rank, part)}

    def advance(self) -> bool:
        """Pass on new lines; return whether there were any."""
        has_moved = False
        for (node, rank), path in _list_files(self.paths, self.record, self.rank).items():
            with path.open("rb") as file:
                file.seek(self.offsets.get(path, 0))
                while data := file.read(CHUNK):
                    self.watch(LogBytes(node=node, rank=rank, data=data, scheduled=self.record.slurm is not None))
                    has_moved = True
                self.offsets[path] = file.tell()
        return has_moved

    def follow_until(self, has_ended: Callable[[], bool], stop: threading.Event) -> None:
        """Pass on new lines until the run has ended or the user stops it."""
        while not stop.is_set():
            is_over = has_ended()  # called first, so that the last lines are not missed
            if not self.advance() and is_over:
                return
            stop.wait(0.1)
