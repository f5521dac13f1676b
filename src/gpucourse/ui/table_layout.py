"""Choose the columns of a table that fit, and their widths. rich would cut words, or break them between two rows.

In a pipe, everything fits. On a terminal, empty columns are dropped first. Then titles use several lines, cells that wrap
become narrower, and spare columns are dropped. Finally, other columns are dropped. A line below the table names what was
dropped. A table that must stay whole is folded instead: each cell is on a line of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Table, style_of, text_of
from gpucourse.ui.text import clean_line, strip_code_marks

GAP = 2  # blank columns between two columns of a table
MIN_WIDTH, MIN_WIDTH_LAST = 16, 8  # of a column that wraps: before and after spare columns are dropped
MAX_WORD = 24  # a word of at most this many columns is not broken
_NOTHING = {"", UNICODE.absent}


class Layout(NamedTuple):
    """The columns that fit, the width of each (None: as wide as its cells need), and the titles of the columns that do not
    fit.
    """

    table: Table
    sizes: tuple[int | None, ...]
    left_out: tuple[str, ...] = ()


def lay_out(table: Table, width: int | None) -> Layout:
    """Return the layout of the table for a terminal with that many columns, or for a pipe (None)."""
    if width is None:
        return Layout(table, (None,) * len(table.columns))
    columns = range(len(table.columns))
    table = _keep(table, [i for i in columns if table.columns[i].title == "" or not _is_empty(table, i)] or [*columns])
    left_out: list[str] = []
    all_columns = table.columns
    while (sizes := _squeeze(table, width)) is None and len(table.columns) > 1:
        if table.whole and not any(column.spare for column in table.columns):
            table = _fold(table)
            return Layout(table, _squeeze(table, width) or (width,), tuple(left_out))
        dropped_index = max(range(1, len(table.columns)), key=lambda i: (table.columns[i].spare, not table.columns[i].wrap, i))
        left_out.append(clean_line(table.columns[dropped_index].title))
        table = _keep(table, [i for i in range(len(table.columns)) if i != dropped_index])
    titles = [clean_line(column.title) for column in all_columns]
    return Layout(table, sizes or (width,), tuple(sorted(left_out, key=titles.index)))


def _squeeze(table: Table, width: int) -> tuple[int, ...] | None:
    """Return the widths of the columns, at most `width` in total, or None if that is impossible. Titles become narrower first,
    then cells that wrap."""
    min_width = MIN_WIDTH if any(column.spare for column in table.columns) else MIN_WIDTH_LAST
    sizes, bodies, floors = [], [], []
    for i, column in enumerate(table.columns):
        title, texts = clean_line(column.title), [clean_line(strip_code_marks(text_of(row[i]))) for row in table.rows]
        body = max(_longest_word([title]), *map(cell_len, texts), 0)
        sizes.append(max(body, cell_len(title)))
        bodies.append(body)
        floors.append(min(body, max(min_width, min(MAX_WORD, _longest_word([title, *texts])))) if column.wrap else body)
    room = width - GAP * (len(sizes) - 1)
    for min_sizes in (bodies, floors):
        while sum(sizes) > room and (candidates := [i for i, size in enumerate(sizes) if size > min_sizes[i]]):
            sizes[max(candidates, key=lambda i: sizes[i])] -= 1
    return tuple(sizes) if sum(sizes) <= room else None


def _fold(table: Table) -> Table:
    """Return the table with one column: below the first cell of each row are its other cells, each after the title of its
    column."""
    first, *others = table.columns
    rows = []
    for name, *cells in table.rows:
        rows.append([name])
        rows += [
            [Cell(f"{UNICODE.bullet} {column.title}: {text_of(cell)}", style_of(cell, column.style))]
            for column, cell in zip(others, cells, strict=True)
            if text_of(cell)
        ]
    return table._replace(columns=[first._replace(wrap=True)], rows=rows, whole=False)


def _longest_word(texts: list[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _is_empty(table: Table, index: int) -> bool:
    return bool(table.rows) and all(text_of(row[index]) in _NOTHING for row in table.rows)


def _keep(table: Table, indexes: list[int]) -> Table:
    columns = [table.columns[i] for i in indexes]
    return table._replace(columns=columns, rows=[[row[i] for i in indexes] for row in table.rows])
