"""Fit a table into the width of a terminal, step by step, so that it stays a table at every width.

A pipe has room for everything. A terminal drops columns that hold nothing; then titles use several lines, spare columns are
dropped, cells that wrap get narrower, and at last other columns are dropped, which a line below the table says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Table, text_of
from gpucourse.ui.text import cells, clean_line

GAP = "  "
WIDEST_CELL = 60  # in a pipe a longer cell does not widen its column in the other rows
NARROWEST, NARROWEST_OF_ALL = 16, 8  # of columns that wrap: while other columns can still be dropped, and after that
LONGEST_WORD = 24  # a word of at most so many columns is not broken
_NOTHING = {"", UNICODE.absent}


class Layout(NamedTuple):
    """The table with the columns that have room, their widths, the gap between them, and the titles of dropped columns."""

    table: Table
    sizes: tuple[int, ...]
    gap: str
    left_out: tuple[str, ...] = ()


def lay_out(table: Table, width: int | None) -> Layout:
    """Lay out the table for that many columns of a terminal, or for a pipe (None)."""
    if width is None:
        widths = zip(_measure(table), titles(table), strict=True)
        return Layout(table, tuple(max(min(size, WIDEST_CELL), cells(title)) for size, title in widths), GAP)
    table = _keep(table, [i for i in range(len(table.columns)) if table.columns[i].title == "" or not _is_empty(table, i)])
    if (sizes := _squeeze(table, width, f"{GAP} ", NARROWEST)) is not None:
        return Layout(table, sizes, f"{GAP} ")
    for wanted in _without_spare_columns(table):
        if (sizes := _squeeze(wanted, width, GAP, NARROWEST)) is not None:
            return Layout(wanted, sizes, GAP)
    if (sizes := _squeeze(wanted, width, GAP, NARROWEST_OF_ALL)) is not None:
        return Layout(wanted, sizes, GAP)
    return _drop_columns(wanted, width)


def titles(table: Table) -> list[str]:
    """Return the columns' titles as they may be shown."""
    return [clean_line(column.title) for column in table.columns]


def _without_spare_columns(table: Table) -> Iterator[Table]:
    """Yield the table, then what is left of it as its spare columns are dropped one by one, the last first."""
    yield table
    for index in reversed([i for i, column in enumerate(table.columns) if column.spare]):
        table = _keep(table, [i for i in range(len(table.columns)) if i != index])
        yield table


def _drop_columns(table: Table, width: int) -> Layout:
    """Return a layout without the last columns, as many as have no room; those that wrap are dropped last, the first stays."""
    left_out: list[str] = []
    while len(table.columns) > 1:
        candidates = range(1, len(table.columns))
        gone = max((i for i in candidates if not table.columns[i].wrap), default=len(table.columns) - 1)
        left_out.insert(0, titles(table)[gone])
        table = _keep(table, [i for i in range(len(table.columns)) if i != gone])
        if (sizes := _squeeze(table, width, GAP, NARROWEST_OF_ALL)) is not None:
            return Layout(table, sizes, GAP, tuple(left_out))
    return Layout(table, (width,), GAP, tuple(left_out))


def _squeeze(table: Table, width: int, gap: str, narrowest: int) -> tuple[int, ...] | None:
    """Return the columns' widths, at most `width` in all; None if that is impossible. Titles get narrower first, then cells
    that wrap."""
    sizes = _measure(table)
    bodies, floors = [], []
    for i, (title, column) in enumerate(zip(titles(table), table.columns, strict=True)):
        texts = [clean_line(text_of(row[i])) for row in table.rows]
        body = max(_longest_word([title]), max(map(cells, texts), default=0))
        bodies.append(body)
        floors.append(min(body, max(narrowest, min(LONGEST_WORD, _longest_word([title, *texts])))) if column.wrap else body)
    room = width - cells(gap) * (len(sizes) - 1)
    for least in (bodies, floors):
        while sum(sizes) > room and (index := _widest(sizes, least)) is not None:
            sizes[index] -= 1
    return tuple(sizes) if sum(sizes) <= room else None


def _longest_word(texts: list[str]) -> int:
    return max((cells(word) for text in texts for word in text.split()), default=0)


def _widest(sizes: list[int], least: list[int]) -> int | None:
    """Return the widest of the columns that can still get narrower; None if there is none."""
    candidates = [i for i, size in enumerate(sizes) if size > least[i]]
    return max(candidates, key=lambda i: sizes[i], default=None)


def _measure(table: Table) -> list[int]:
    """Return the columns' widths: those of their longest cells or titles."""
    rows = [titles(table), *([clean_line(text_of(cell)) for cell in row] for row in table.rows)]
    return [max(map(cells, texts)) for texts in zip(*rows, strict=True)]


def _is_empty(table: Table, index: int) -> bool:
    return bool(table.rows) and all(text_of(row[index]) in _NOTHING for row in table.rows)


def _keep(table: Table, indexes: list[int]) -> Table:
    """Return the table with these columns; unchanged if none would stay."""
    if not indexes:
        return table
    columns = tuple(table.columns[i] for i in indexes)
    return table._replace(columns=columns, rows=tuple(tuple(row[i] for i in indexes) for row in table.rows))
