"""Ranks that have printed nothing, beside those that draw bars."""

from __future__ import annotations

import itertools
import time

import pytest

from gpucourse.model.event import LogBytes, RankEvent, SilentRanks
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.line import plain
from gpucourse.ui.logscreen import LogScreen
from tests.unit.ui.test_live_ranks import bar, ranks_of


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a second after the one before: a line without a newline has waited long enough."""
    seconds = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))


def begin(count: int) -> LogScreen:
    """A run of so many ranks, one a node, of which none has printed anything."""
    screen = LogScreen(UNICODE)
    screen.begin_run(SilentRanks(ranks={f"node{rank}": (rank,) for rank in range(count)}))
    return screen


def draw(screen: LogScreen, *ranks: int) -> None:
    for rank in ranks:
        screen.feed(LogBytes(node=f"node{rank}", rank=rank, data=bar(40)))


def rows(screen: LogScreen, most: int = 100) -> list[str]:
    return [plain(row) for row in screen.statuses(most)]


def test_where_there_is_room_every_rank_has_a_row_in_order() -> None:
    screen = begin(4)
    assert (rows(screen), screen.count_statuses()) == ([], 0), "nobody draws a bar"
    draw(screen, 3, 1)
    assert rows(screen) == [
        "[n0 r0] has said nothing yet",
        f"[n1 r1] {bar(40).decode()[1:]}",
        "[n2 r2] has said nothing yet",
        f"[n3 r3] {bar(40).decode()[1:]}",
    ]
    assert screen.count_statuses() == 4


def test_who_has_said_a_whole_line_or_has_ended_has_no_row() -> None:
    screen = begin(5)
    draw(screen, 0)
    screen.feed(LogBytes(node="node1", rank=1, data=b"done\n"))
    screen.note_end(RankEvent(node="node2", rank=2, code=0))
    screen.note_end(RankEvent(node="node3", rank=3, code=1))
    assert [row[:28] for row in rows(screen)[1:]] == ["[n3 r3] ✗ exit code 1", "[n4 r4] has said nothing yet"]


def test_silent_ranks_are_the_worst_after_those_that_failed() -> None:
    screen = begin(32)
    draw(screen, *range(5, 32))
    screen.note_end(RankEvent(node="node9", rank=9, code=1))
    assert ranks_of(rows(screen, 10)[:-1]) == [9, 0, 1, 2, 3, 4, 5, 6, 7]
    assert rows(screen, 10)[-1] == "+23 more"


def test_where_only_some_ranks_print_they_are_first() -> None:
    screen = begin(32)
    draw(screen, 31)
    shown = rows(screen, 5)
    assert ranks_of(shown[:-1]) == [31, 0, 1, 2]
    assert shown[-1] == "+28 more"


def test_how_ranks_ended_says_nothing_of_the_next_run() -> None:
    screen = begin(2)
    screen.note_end(RankEvent(node="node1", rank=1, code=1))
    screen.begin_run(SilentRanks(ranks={"node0": (0,), "node1": (1,)}))
    draw(screen, 0)
    assert rows(screen)[1] == "[n1 r1] has said nothing yet"
