"""The logs of a run as lines for its page: the lines of all ranks in the order of their arrival, each with its level."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Literal, NamedTuple

from gpucourse.coach.words import Level, LevelReader
from gpucourse.learning.pages.run_content import MAX_LOGS, MIN_LOG_LINES, LogExcerpt, read_logs
from gpucourse.outside.files import read_ends
from gpucourse.outside.names import OutsideError
from gpucourse.ui.loglines import Source, visible
from gpucourse.ui.styles import RANK_STYLES
from gpucourse.units import format_bytes
from gpucourse.workspace.paths import RunPaths

LogOwner = tuple[str, int | None]
"""The node and the rank of a log; the rank of a launcher's log is None."""

MAX_LINE = 4000  # characters of one line on a page
_MAX_NEW_BYTES, _MIN_NEW_BYTES, _MAX_NEW_LINES = 256 << 10, 2 << 10, 1000  # limits for one reading of all logs


class Process(NamedTuple):
    """A rank or a launcher that wrote a log: the prefix of its lines, their style, and its description, such as `rank 1 on
    node0`."""

    prefix: str
    style: str
    title: str


class LogLine(NamedTuple):
    """A line on the page. `process` is the index of its process. If `level` is `gap`, the text says how much is left out."""

    process: int
    level: Level | Literal["gap"]
    text: str


def describe_process(owner: LogOwner) -> Process:
    """Return the process that wrote that log."""
    node, rank = owner
    style = "launcher" if rank is None else f"r{rank % RANK_STYLES}"
    return Process(Source(node, rank).prefix, style, f"{'launcher' if rank is None else f'rank {rank}'} on {node}")


def merge_logs(run_id: str, logs: Iterable[LogExcerpt]) -> list[LogLine]:
    """Return the lines of all logs in the order of their arrival. The `process` of a line is the index of its log in `logs`."""
    parts = [_list_timed_lines(run_id, number, log) for number, log in enumerate(logs)]
    return [line for _, line in heapq.merge(*parts, key=itemgetter(0))]


def _list_timed_lines(run_id: str, number: int, log: LogExcerpt) -> Iterator[tuple[float, LogLine]]:
    """Yield the lines of one log, each with the time of its arrival. These times never decrease."""
    at = 0.0
    for part, start in ((log.begin, 0), (log.end, log.size - len(log.end))):
        if part is log.end and part:
            yield at, LogLine(number, "gap", _describe_gap(log.left_out, run_id, log.rank))
        levels, place = LevelReader(), start
        for raw in part.removesuffix(b"\n").split(b"\n") if part else ():
            place += len(raw) + 1
            at = max(at, log.find_time(place))
            yield at, _make_line(number, raw, levels)


def _make_line(number: int, raw: bytes, levels: LevelReader) -> LogLine:
    text = visible(raw[: 4 * MAX_LINE])
    level = levels.read(text)
    return LogLine(number, level, text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]} ...")


def _describe_gap(size: int, run_id: str, rank: int | None) -> str:
    """Return the sentence that replaces lines that are left out, with the command that shows them."""
    option = "" if rank is None else f" --rank {rank}"
    return f"... {format_bytes(size)} are left out here. The whole log: gpucourse logs {run_id}{option}"


class LogTail:
    """Read the logs of a run that is under way: first the lines that the run's page shows, then only lines that were added.

    Only the position in each log is kept; an unfinished last line is read again until it is whole.
    """

    def __init__(self, run_id: str, files: RunPaths) -> None:
        self.processes: list[Process] = []
        self._run_id, self._files = run_id, files
        self._places: dict[LogOwner, int] = {}
        self._numbers: dict[LogOwner, int] = {}
        self._levels: dict[LogOwner, LevelReader] = {}

    def begin(self) -> list[LogLine]:
        """Return the lines that have arrived so far: the beginning and the end of each log."""
        logs = list(read_logs(self._files, []))
        for log in logs:
            owner = log.node, log.rank
            self._add(owner)
            self._places[owner] = log.size - len((log.end or log.begin).rpartition(b"\n")[2])
        return merge_logs(self._run_id, map(_drop_unfinished_line, logs))

    def read(self) -> list[LogLine]:
        """Return the lines that were added since the last call. If there are too many, only the newest are read, with a gap
        before them.
        """
        logs = list(self._files.all_logs())[:MAX_LOGS]
        max_bytes = max(_MIN_NEW_BYTES, _MAX_NEW_BYTES // max(1, len(logs)))
        max_lines = max(MIN_LOG_LINES, _MAX_NEW_LINES // max(1, len(logs)))
        return [line for owner in logs for line in self._read_log(owner, max_bytes, max_lines)]

    def _read_log(self, owner: LogOwner, max_bytes: int, max_lines: int) -> Iterator[LogLine]:
        path, place = self._files.rank_log(*owner), self._places.get(owner, 0)
        try:
            if path.lstat().st_size <= place:
                return
            begin, end, size = read_ends(path, 0, max_bytes)
        except (OSError, OutsideError):
            return
        self._add(owner)
        data = end or begin
        start = max(place, size - len(data))
        data = data[start - size :]
        cut = data.rfind(b"\n") + 1 or (len(data) if len(data) == max_bytes else 0)
        lines = data[:cut].removesuffix(b"\n").rsplit(b"\n", max_lines)[-max_lines:] if cut else []
        left_out = start + cut - place - sum(map(len, lines)) - len(lines)
        if lines and left_out > 0:
            yield LogLine(self._numbers[owner], "gap", _describe_gap(left_out, self._run_id, owner[1]))
        for raw in lines:
            yield _make_line(self._numbers[owner], raw, self._levels[owner])
        if cut:
            self._places[owner] = start + cut

    def _add(self, owner: LogOwner) -> None:
        if owner not in self._numbers:
            self._numbers[owner] = len(self.processes)
            self._levels[owner] = LevelReader()
            self.processes.append(describe_process(owner))


def _drop_unfinished_line(log: LogExcerpt) -> LogExcerpt:
    last = log.end or log.begin
    whole_lines = last[: last.rfind(b"\n") + 1]
    size = log.size - len(last) + len(whole_lines)
    return replace(log, size=size, end=whole_lines) if log.end else replace(log, size=size, begin=whole_lines)
