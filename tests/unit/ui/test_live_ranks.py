"""The screen of a run with many nodes: its time, a progress bar for each rank, and which of them are left out."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Sequence

import pytest

from gpucourse.model.event import LogBytes, RankEvent, Stage
from gpucourse.runs.follow import name_nodes
from gpucourse.ui.live import Live
from gpucourse.ui.out import Out
from gpucourse.ui.region import Region
from tests.unit.ui.emulator import Emulator

LINES = 24
ROOM = LINES - 2 - 1  # what the region leaves free, and the title
ELAPSED_S = 754.3


class Window(Out):
    """An output that reports the size of a terminal with that many columns."""

    def __init__(self, columns: int) -> None:
        self.text = io.StringIO()
        super().__init__(self.text)
        self.columns = columns

    def size(self) -> tuple[int, int]:
        return self.columns, LINES


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each reading of the clock be a second later, so that a line without a newline has waited long enough."""
    seconds = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))


def bar(percent: int) -> bytes:
    """Return a progress bar as tqdm writes it."""
    return b"\repoch 1: %d%%|%s| %d/100 [00:12<00:28,  2.44it/s]" % (percent, b"#" * (percent // 3), percent)


def show(count: int, columns: int, percents: Sequence[int], ranks: Sequence[int] = ()) -> list[str]:
    """Return the rows of the region while `count` ranks, one per node, draw bars; the last rank was the first to write."""
    window = Window(columns)
    live = Live(window, colour=True, moving=True, clock=lambda: 0.0)
    live(Stage(name="run", text=f"running 3.2 on {name_nodes([f'node{rank}' for rank in range(count)])}"))
    for rank in reversed(range(count)):
        live(LogBytes(node=f"node{rank}", rank=rank, data=bar(percents[rank])))
    for rank in ranks:
        live(RankEvent(node=f"node{rank}", rank=rank, code=1))
    Region(window, colour=True).paint([], live._rows(ELAPSED_S))
    emulator = Emulator(columns)
    emulator.feed(window.text.getvalue())
    return emulator.lines


def ranks_of(rows: Sequence[str]) -> list[int]:
    return [int(row.split("]")[0].rpartition("r")[2]) for row in rows]


@pytest.mark.parametrize(("count", "columns"), [(2, 80), (8, 60), (64, 110)])
def test_live_shows_the_slowest_ranks_of_many(count: int, columns: int) -> None:
    percents = [rank * 37 % 100 for rank in range(count)]
    rows = show(count, columns, percents)
    assert len(rows) == min(count, ROOM) + 1, "no row is folded"
    assert max(map(len, rows)) < columns
    bars, title = rows[:-1], rows[-1]
    assert title.split("  ")[0][2:] == f"running 3.2 on {'node0, node1' if count == 2 else f'{count} nodes'}"
    assert title.endswith("12 min 34 s")
    if count <= ROOM:
        assert ranks_of(bars) == list(range(count))
    else:
        assert bars.pop() == f"+{count - ROOM + 1} more"
        slowest = sorted(range(count), key=lambda rank: (percents[rank] // 5, rank))
        assert ranks_of(bars) == slowest[: ROOM - 1]
    assert len({row.index("epoch") for row in bars}) == 1, "one below the other"
    for rank, row in zip(ranks_of(bars), bars, strict=True):
        assert f"epoch 1: {percents[rank]}%|" in row


def test_live_shows_failed_ranks_first_in_the_order_of_their_ends() -> None:
    rows = show(32, 80, [50] * 32, ranks=(30, 7))
    assert ranks_of(rows[:4]) == [30, 7, 0, 1]
    assert rows[0].startswith("[n30 r30] ✗ exit code 1 epoch 1: 50%")
    assert rows[-2] == "+12 more"
