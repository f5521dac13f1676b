"""How a table finds room in a terminal: by what it gives up, in order, so that it stays a table at every width.

A pipe has room for everything. A terminal drops columns that hold nothing; then titles take several lines, spare columns go,
cells that wrap get narrower, and at last columns go, which is said below the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Table, text_of
from gpucourse.ui.text import cells, clean_line

GAP = "  "
WIDEST_CELL = 60  # in a pipe a longer cell does not push the columns of the other rows away
NARROWEST, NARROWEST_OF_ALL = 16, 8  # columns that wrap: while other columns can still go, and after that
LONGEST_WORD = 24  # up to so many columns a word is not broken
_NOTHING = {"", UNICODE.absent}


class Layout(NamedTuple):
    """The table with the columns that have room, their widths, the gap between them, and the titles of those that went."""

    table: Table
    sizes: tuple[int, ...]
    gap: str
    left_out: tuple[str, ...] = ()


def lay_out(table: Table, width: int | None) -> Layout:
    """The table for that many columns of a terminal, or for a pipe (None)."""
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
    """The columns' titles as they may be shown."""
    return [clean_line(column.title) for column in table.columns]


def _without_spare_columns(table: Table) -> Iterator[Table]:
    """The table, and what is left of it as its spare columns go, the last first."""
    yield table
    for index in reversed([i for i, column in enumerate(table.columns) if column.spare]):
        table = _keep(table, [i for i in range(len(table.columns)) if i != index])
        yield table


def _drop_columns(table: Table, width: int) -> Layout:
    """What has room without the last columns; those that wrap go last, and the first stays."""
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
    """The columns' widths, at most `width` in all; None if that cannot be. Titles give way first, then cells that wrap."""
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
    """The widest of the columns that can still give way."""
    candidates = [i for i, size in enumerate(sizes) if size > least[i]]
    return max(candidates, key=lambda i: sizes[i], default=None)


def _measure(table: Table) -> list[int]:
    """The columns' widths as their longest cells have them."""
    rows = [titles(table), *([clean_line(text_of(cell)) for cell in row] for row in table.rows)]
    return [max(map(cells, texts)) for texts in zip(*rows, strict=True)]


def _is_empty(table: Table, index: int) -> bool:
    return bool(table.rows) and all(text_of(row[index]) in _NOTHING for row in table.rows)


def _keep(table: Table, indexes: list[int]) -> Table:
    """The table with these columns; as it is, where none would stay."""
    if not indexes:
        return table
    columns = tuple(table.columns[i] for i in indexes)
    return table._replace(columns=columns, rows=tuple(tuple(row[i] for i in indexes) for row in table.rows))
