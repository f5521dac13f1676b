"""The rows of ranks that draw bars, beside those that have printed nothing."""

from __future__ import annotations

from gpucourse.model.event import LogBytes, RankEvent, SilentRanks
from gpucourse.ui.logscreen import LogScreen
from tests.unit.ui.test_live_ranks import bar, ranks_of


def begin(count: int) -> LogScreen:
    """Return the screen of a run with this many ranks, one per node, before any of them has printed anything."""
    screen = LogScreen(0.0)
    screen.begin_run(SilentRanks(ranks={f"node{rank}": (rank,) for rank in range(count)}))
    return screen


def draw(screen: LogScreen, *ranks: int) -> None:
    for rank in ranks:
        screen.feed(LogBytes(node=f"node{rank}", rank=rank, data=bar(40)))


def rows(screen: LogScreen, limit: int = 100) -> list[str]:
    return [row.plain for row in screen.statuses(limit)]


def test_statuses_have_every_rank_in_order_when_there_is_room() -> None:
    screen = begin(4)
    assert (rows(screen), screen.count_statuses()) == ([], 0), "nobody draws a bar"
    draw(screen, 3, 1)
    assert rows(screen) == [
        "[n0 r0] has printed nothing yet",
        f"[n1 r1] {bar(40).decode()[1:]}",
        "[n2 r2] has printed nothing yet",
        f"[n3 r3] {bar(40).decode()[1:]}",
    ]
    assert screen.count_statuses() == 4


def test_statuses_have_silent_ranks_after_failed_ones() -> None:
    screen = begin(32)
    draw(screen, *range(5, 32))
    screen.note_end(RankEvent(node="node9", rank=9, code=1))
    assert ranks_of(rows(screen, 10)[:-1]) == [9, 0, 1, 2, 3, 4, 5, 6, 7]
    assert rows(screen, 10)[-1] == "+23 more"
