"""Reading the logs of a run from disk, for `logs`: whole, by rank, or as they grow under somebody else's hands."""

from __future__ import annotations

import heapq
import re
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.model.event import LogBytes
from gpucourse.model.record import RunRecord
from gpucourse.workspace import runs

_NAME = re.compile(r"^(?P<node>.+)-(?:rank(?P<rank>\d+)|launcher)\.log$")
CHUNK = 1 << 18


def log_files(context: Context, record: RunRecord, rank: int | None) -> dict[tuple[str, int | None], Path]:
    """The log files of a run by (node, rank), ranks in order and launchers last. Raises UsageError for an unknown rank."""
    files_by_rank: dict[tuple[str, int | None], Path] = {}
    for path in sorted(runs.files_of(context.paths, record).logs.glob("*.log")):
        if match := _NAME.match(path.name):
            files_by_rank[match["node"], int(match["rank"]) if match["rank"] else None] = path
    ordered = dict(sorted(files_by_rank.items(), key=lambda item: (item[0][1] is None, item[0][1] or 0, item[0][0])))
    if rank is None:
        return ordered
    chosen = {key: path for key, path in ordered.items() if key[1] == rank}
    if not chosen and record.has_ended:
        ranks = ", ".join(str(key[1]) for key in ordered if key[1] is not None)
        raise UsageError(f"run {record.id} has no log of rank {rank}", hint=f"its ranks: {ranks or 'none'}")
    return chosen


def read(path: Path) -> Iterator[bytes]:
    """The file in pieces."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def read_timed_lines(context: Context, record: RunRecord, rank: int | None) -> Iterator[tuple[float, str, int | None, bytes]]:
    """Every line in the order in which lines came here: seconds since the run was made, node, rank, the line.

    One clock for all ranks, this computer's. Lines of one piece came together; what was brought home later says when it was.
    """
    began = datetime.fromisoformat(record.created).timestamp()
    files = runs.files_of(context.paths, record)
    timed = (
        _read_with_times(key, path, files.rank_times(*key), began) for key, path in log_files(context, record, rank).items()
    )
    yield from heapq.merge(*timed, key=lambda line: line[0])


def _read_with_times(
    key: tuple[str, int | None], log: Path, times: Path, began: float
) -> Iterator[tuple[float, str, int | None, bytes]]:
    pieces = iter(times.read_text().splitlines() if times.is_file() else ())
    end, at, place = 0, 0.0, 0
    with log.open("rb") as file:
        for line in file:
            place += len(line)
            while end < place and (piece := next(pieces, "")):
                word, _, moment = piece.partition(" ")
                end, at = int(word), max(at, float(moment) - began)
            yield at, *key, line


class Tail:
    """Tells the context's watcher what is added to a run's logs on disk, from the start of each file."""

    def __init__(self, context: Context, record: RunRecord, rank: int | None) -> None:
        self.context, self.record, self.rank = context, record, rank
        self.offsets: dict[Path, int] = {}

    def advance(self) -> bool:
        """Pass on what is new; whether anything was."""
        moved = False
        for (node, rank), path in log_files(self.context, self.record, self.rank).items():
            with path.open("rb") as file:
                file.seek(self.offsets.get(path, 0))
                while data := file.read(CHUNK):
                    self.context.watch(LogBytes(node=node, rank=rank, data=data, scheduled=self.record.slurm is not None))
                    moved = True
                self.offsets[path] = file.tell()
        return moved

    def until(self, ended: Callable[[], bool], stop: threading.Event) -> None:
        """Pass on what is new until the run has ended or the person lets go."""
        while not stop.is_set():
            over = ended()  # asked first, so that the last lines are not missed
            if not self.advance() and over:
                return
            stop.wait(0.1)
