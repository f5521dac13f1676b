from __future__ import annotations

import re
import threading

import pytest

from gpucourse.model.event import LogBytes
from gpucourse.ui import logscreen
from gpucourse.ui.logscreen import LogScreen
from tests.waiting import STUCK_S


def piece(data: bytes, rank: int | None = 0, node: str = "node0") -> LogBytes:
    return LogBytes(node=node, rank=rank, data=data)


def screen(*pieces: LogBytes, held_s: float = logscreen.HELD_S) -> LogScreen:
    log_screen = LogScreen(held_s)
    for piece in pieces:
        log_screen.feed(piece)
    return log_screen


def take_rows(log_screen: LogScreen) -> list[str]:
    return [row.plain for row in log_screen.take()]


def everything(log_screen: LogScreen) -> list[str]:
    rows: list[str] = []
    while batch := take_rows(log_screen):
        rows += batch
    return rows + [row.plain for row in log_screen.close()]


@pytest.mark.parametrize(
    ("node", "rank", "prefix"),
    [("node0", 1, "[n0 r1]"), ("node-12", 3, "[n12 r3]"), ("node1", None, "[n1 --]"), ("gpu-box", 0, "[gpu-box r0]")],
)
def test_take_puts_node_and_rank_before_a_line(node: str, rank: int | None, prefix: str) -> None:
    assert take_rows(screen(piece(b"hello\n", rank, node))) == [f"{prefix} hello"]


def test_statuses_show_a_line_without_newline_after_a_while() -> None:
    assert screen(piece(b"waiting for rank 1 ..."), held_s=60.0).statuses() == [], "not yet: the rest may be on its way"
    output = screen(piece(b"waiting for rank 1 ..."), held_s=0.0)
    assert [row.plain for row in output.statuses()] == ["[n0 r0] waiting for rank 1 ..."]
    assert take_rows(output) == []
    assert [row.plain for row in output.close()] == ["[n0 r0] waiting for rank 1 ..."]
    assert output.close() == []


def test_statuses_replace_a_line_after_a_carriage_return() -> None:
    output = screen(piece(b"\r 10%"), piece(b"\r 20%"), piece(b"\r 30%\r"), held_s=0.0)
    assert [row.plain for row in output.statuses()] == ["[n0 r0]  30%"]
    output.feed(piece(b"\r100%\n"))
    assert output.statuses() == []
    assert take_rows(output) == ["[n0 r0] 100%"]
    output.feed(piece(b"windows line\r\n"))
    assert take_rows(output) == ["[n0 r0] windows line"]


def test_take_counts_a_flood_to_the_last_line() -> None:
    log_screen = LogScreen()
    screen_lines: list[str] = []
    fed = 0
    for turn in range(40):
        for rank in (0, 1):
            count = 3000 if turn % 3 else 10
            log_screen.feed(
                piece(b"".join(b"line %d of a flood\n" % (fed + number) for number in range(count)), rank, f"node{rank}")
            )
            fed += count
        screen_lines += take_rows(log_screen)
    screen_lines += everything(log_screen)
    missed = [
        re.fullmatch(r"\[n(\d) r\1\] … ([\d,]+) lines? not shown; see logs/node\1-rank\1\.log", line) for line in screen_lines
    ]
    left_out = sum(int(match.group(2).replace(",", "")) for match in missed if match)
    assert left_out + sum(1 for match in missed if not match) == fed
    assert screen_lines[-1].endswith("of a flood") or "not shown" in screen_lines[-1]
    assert len(screen_lines) < fed / 10


def test_take_keeps_a_line_of_another_rank_in_a_flood() -> None:
    log_screen = LogScreen()
    log_screen.feed(piece(b"the one line that matters\n", 1, "node1"))
    for _ in range(100):
        log_screen.feed(piece(b"noise\n" * 1000))
    assert "[n1 r1] the one line that matters" in take_rows(log_screen)


def test_take_cuts_a_long_line_and_says_where_it_is_whole() -> None:
    output = screen(piece(b"x" * 10_000 + b"\n"))
    (line,) = take_rows(output)
    assert line.endswith("… whole line in logs/node0-rank0.log")
    assert len(line) < 2100


def test_take_breaks_a_wide_line_between_words_below_its_text() -> None:
    (row,) = screen(piece(b"a sum of all ranks, right on every element\n")).take(width=40)
    assert row.plain.split("\n") == ["[n0 r0] a sum of all ranks, right on", "        every element"]


def test_take_keeps_a_wide_path_whole() -> None:
    path = "/folder" * 9
    (row,) = screen(piece(f"written: {path}\n".encode())).take(width=40)
    assert row.plain.split("\n") == ["[n0 r0] written:", f"        {path}"]


def test_feed_of_many_threads_loses_nothing() -> None:
    log_screen = LogScreen()
    stop = threading.Event()
    screen_lines: list[str] = []

    def printer() -> None:
        while not stop.is_set():
            screen_lines.extend(take_rows(log_screen))

    def feeder(rank: int) -> None:
        for number in range(2000):
            log_screen.feed(piece(b"rank %d line %d\n" % (rank, number), rank))

    threads = [threading.Thread(target=feeder, args=(rank,)) for rank in range(8)]
    watcher = threading.Thread(target=printer)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(STUCK_S)
    stop.set()
    watcher.join(STUCK_S)
    screen_lines += everything(log_screen)
    line_count = 0
    for text in screen_lines:
        match = re.search(r"… ([\d,]+) lines? not shown", text)
        line_count += int(match.group(1).replace(",", "")) if match else 1
    assert line_count == 8 * 2000
    for rank in range(8):
        numbers = [int(line.rsplit(" ", 1)[1]) for line in screen_lines if f"r{rank}] rank {rank} line" in line]
        assert numbers == sorted(numbers), "a rank's lines stay in order"
