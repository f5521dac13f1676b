from __future__ import annotations

import io

from gpucourse.ui.out import Out
from gpucourse.ui.region import Region
from gpucourse.ui.styles import line
from tests.unit.ui.emulator import Emulator


class Sized(Out):
    """An output that reports the size of a terminal."""

    def __init__(self, stream: io.StringIO, columns: int, lines: int) -> None:
        super().__init__(stream)
        self.columns, self.lines = columns, lines

    def size(self) -> tuple[int, int]:
        return self.columns, self.lines


class Screen:
    """A region together with the terminal that shows it."""

    def __init__(self, columns: int = 40, lines: int = 10) -> None:
        self.stream = io.StringIO()
        self.out = Sized(self.stream, columns, lines)
        self.region = Region(self.out, colour=True)
        self.emulator = Emulator(columns)

    def paint(self, upper_lines: list[str], *rows: str) -> list[str]:
        self.region.paint([line(text) for text in upper_lines], [line((row, "accent")) for row in rows])
        self.emulator.feed(self.stream.getvalue())
        self.stream.seek(0)
        self.stream.truncate()
        return self.emulator.lines


def test_paint_scrolls_finished_lines_away_above_what_moves() -> None:
    screen = Screen()
    assert screen.paint([], "working 1") == ["working 1"]
    assert screen.paint(["done a"], "working 2", "more") == ["done a", "working 2", "more"]
    assert screen.paint(["done b", "done c"], "working 3") == ["done a", "done b", "done c", "working 3"]
    assert screen.paint([], "shorter") == ["done a", "done b", "done c", "shorter"]
    assert not screen.emulator.cursor_visible
    assert screen.paint(["end"]) == ["done a", "done b", "done c", "end"]
    assert screen.emulator.cursor_visible
    assert screen.paint(["after"]) == ["done a", "done b", "done c", "end", "after"]


def test_paint_keeps_what_was_finished_when_the_terminal_gets_narrower() -> None:
    screen = Screen(columns=40)
    screen.paint(["finished"], "a" * 39, "b" * 39)
    # A terminal of 20 columns shows the two moving lines on four rows; the cursor is at the end of the last.
    emulator = Emulator(20)
    emulator.rows = ["finished", "a" * 20, "a" * 19, "b" * 20, "b" * 19]
    emulator.row, emulator.column = 4, 19
    screen.emulator, screen.out.columns = emulator, 20
    assert screen.paint([], "now") == ["finished", "now"]


def test_paint_leaves_room_for_the_ascii_ellipsis() -> None:
    screen = Screen(columns=20)
    screen.out.ascii = True
    (row,) = screen.paint([], "a" * 40)
    assert row == "a" * 16 + "..."


def test_paint_overwrites_what_moves_instead_of_erasing_it_first() -> None:
    screen = Screen()
    screen.paint([], "working 1", "more")
    screen.region.paint([], [line("working 2"), line("more")])
    assert "\x1b[2K" not in screen.stream.getvalue()
