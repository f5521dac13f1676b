from __future__ import annotations

import re
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.errors import DamagedFile, UsageError
from gpucourse.model.event import Event, LogBytes
from gpucourse.runs.logs import CHUNK, LogPart, StoredLog, Tail, select_logs
from gpucourse.workspace import runs
from tests.learning import Learning

BEGAN = 1000.0


def write_log(folder: Path, *pieces: tuple[float, bytes], part: LogPart | None = None, newest: float = 0.0) -> StoredLog:
    """Return a log whose pieces arrived this many seconds after the run began."""
    path, times, size = folder / "node0-rank0.log", folder / "node0-rank0.times", 0
    with path.open("wb") as log, times.open("w") as notes:
        for seconds, data in pieces:
            size += log.write(data)
            notes.write(f"{size} {BEGAN + seconds:.3f}\n")
    return StoredLog(node="node0", rank=0, path=path, times=times, part=part or LogPart(), newest=BEGAN + newest)


def text_of(log: StoredLog) -> bytes:
    return b"".join(log.read())


def read_timed_lines(log: StoredLog) -> list[tuple[float, bytes]]:
    return [(seconds, lines) for seconds, _, lines in log.read_timed(BEGAN)]


NUMBERS = b"".join(b"line %d\n" % number for number in range(200_000))


@pytest.mark.parametrize("tail", [0, 1, 3, 100_000, 200_000, 300_000])
def test_read_tail_begins_at_the_first_of_the_last_lines(tmp_path: Path, tail: int) -> None:
    log = write_log(tmp_path, (0, NUMBERS), part=LogPart(tail=tail))
    assert text_of(log).splitlines() == NUMBERS.splitlines()[max(0, 200_000 - tail) :]


def test_read_counts_a_last_line_without_a_newline(tmp_path: Path) -> None:
    assert text_of(write_log(tmp_path, (0, b"a\nb\nc"), part=LogPart(tail=2))) == b"b\nc"
    assert text_of(write_log(tmp_path, (0, b""), part=LogPart(tail=2))) == b""
    assert text_of(write_log(tmp_path, (0, b"\n\n\n"), part=LogPart(tail=2))) == b"\n\n"


def test_read_grep_returns_the_lines_that_match_and_tail_the_last_of_them(tmp_path: Path) -> None:
    pattern = re.compile(rb"^line \d*77$")
    matching = [line for line in NUMBERS.splitlines() if line.endswith(b"77")]
    assert text_of(write_log(tmp_path, (0, NUMBERS), part=LogPart(grep=pattern))).splitlines() == matching
    assert text_of(write_log(tmp_path, (0, NUMBERS), part=LogPart(grep=pattern, tail=2))).splitlines() == matching[-2:]
    assert text_of(write_log(tmp_path, (0, b"a\nb c\n"), part=LogPart(grep=re.compile(rb"a\sb")))) == b""
    assert text_of(write_log(tmp_path, (0, b"a\n\nb"), part=LogPart(grep=re.compile(rb"^$")))) == b"\n"


@pytest.mark.parametrize(
    ("since", "text"), [(0.5, b"four\n"), (2.5, b"three\nfour\n"), (9, b"one\ntwo\nthree\nfour\n"), (0, b"four\n")]
)
def test_read_since_counts_back_from_the_newest(tmp_path: Path, since: float, text: bytes) -> None:
    """Read lines, each of which counts as arrived when its end arrived."""
    pieces = (1, b"one\ntw"), (4, b"o\nthr"), (8, b"ee\n"), (10, b"four\n")
    assert text_of(write_log(tmp_path, *pieces, part=LogPart(since=since), newest=10)) == text


def test_read_timed_returns_the_time_of_the_end_of_each_line(tmp_path: Path) -> None:
    log = write_log(tmp_path, (1, b"one\ntw"), (4, b"o\nthr"), (8, b"ee\nfour\n"), (7, b"five"))
    assert read_timed_lines(log) == [(1.0, b"one\n"), (4.0, b"two\n"), (8.0, b"three\nfour\n"), (8.0, b"five")]


def test_read_timed_returns_a_line_without_a_time_last(tmp_path: Path) -> None:
    log = write_log(tmp_path, (3, b"one\n"))
    with log.path.open("ab") as stream:
        stream.write(b"two\n")
    assert read_timed_lines(log) == [(3.0, b"one\n"), (3.0, b"two\n")]
    log.times.unlink()
    assert read_timed_lines(log) == [(0.0, b"one\ntwo\n")]


def test_read_timed_names_damaged_times(tmp_path: Path) -> None:
    log = write_log(tmp_path, (3, b"one\n"))
    log.times.write_text("4 soon\n")
    with pytest.raises(DamagedFile, match=r"node0-rank0\.times is damaged"):
        read_timed_lines(log)


@pytest.mark.parametrize("part", [LogPart(), LogPart(tail=1), LogPart(grep=re.compile(b"xy")), LogPart(since=1)])
def test_read_needs_little_memory_for_a_line_of_any_length(tmp_path: Path, part: LogPart) -> None:
    def long_line() -> Iterator[tuple[float, bytes]]:
        for second in range(40):
            yield second, b"x" * CHUNK
        yield 41, b"\n"

    log = write_log(tmp_path, *long_line(), part=part, newest=41)
    tracemalloc.start()
    size = sum(len(lines) for _, _, lines in log.read_timed(BEGAN)) + sum(map(len, log.read()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == 0 if part.grep else size > 0
    assert peak < 8 * CHUNK


def test_select_logs_has_ranks_in_order_and_launchers_last(learning: Learning) -> None:
    record = learning.record()
    files = runs.files_of(learning.context.paths, record)
    for node, rank in (("node0", None), ("node1", 1)):
        files.rank_log(node, rank).write_text("a line\n")
    logs = select_logs(learning.context.paths, record)
    assert [(log.node, log.rank) for log in logs] == [("node0", 0), ("node1", 1), ("node0", None)]
    assert [log.node for log in select_logs(learning.context.paths, record, 1)] == ["node1"]
    with pytest.raises(UsageError, match="has no log of rank 7") as caught:
        select_logs(learning.context.paths, record, 7)
    assert caught.value.hint == "ranks with a log: 0, 1"
    with pytest.raises(UsageError, match="has no record of when its lines arrived"):
        select_logs(learning.context.paths, record, part=LogPart(since=5))


def test_advance_passes_on_what_was_added_and_until_the_last_lines(learning: Learning) -> None:
    paths, record, events = learning.context.paths, learning.record(), list[Event]()
    files = runs.files_of(paths, record)
    tail = Tail(paths, events.append, record, None, LogPart(tail=0))
    assert not tail.advance()
    with files.rank_log("node0", 0).open("a") as log:
        log.write("more\n")
    assert tail.advance()
    files.rank_log("node1", 1).write_text("new\n")
    tail.follow_until(lambda: True, threading.Event())
    assert events == [LogBytes(node="node0", rank=0, data=b"more\n"), LogBytes(node="node1", rank=1, data=b"new\n")]
