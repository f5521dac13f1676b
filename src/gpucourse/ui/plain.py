"""A view as plain text: aligned columns, no colour, no boxes. Standard library only: a pipe has no time for more."""

from __future__ import annotations

from collections.abc import Iterator

from gpucourse.ui.glyphs import UNICODE, Glyphs
from gpucourse.ui.tables import Code, Content, Facts, Items, Paragraph, Part, Table, View, facts, text_of
from gpucourse.ui.text import cells, clean, clean_line, pad, wrap

GAP = "  "
PROSE = 92  # columns of running text where nobody says how wide the reader's window is
WIDEST = 60  # a longer cell does not push the columns of the other rows away


def render(view: View, *, width: int | None = None, glyphs: Glyphs = UNICODE) -> str:
    """The view as text that ends in a newline. `width` None (a pipe): tables and facts are as wide as they are."""
    blocks: list[list[str]] = []
    if view.title:
        blocks.append([clean_line(view.title)])
    blocks.extend(list(_part(part, width, glyphs)) for part in view.parts)
    if view.footer:
        blocks.append([line for text in view.footer for line in wrap(clean(text), width, rest=GAP)])
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block) + "\n"


def fits(table: Table, width: int | None) -> bool:
    """Whether the table has room in that many columns, its wrapping columns at 16 at least."""
    if width is None:
        return True
    needed = sum(min(size, 16) if column.wrap else size for column, size in zip(table.columns, _sizes(table), strict=True))
    return needed + len(GAP) * (len(table.columns) - 1) <= width


def fact_lines(told: Facts, width: int | None) -> Iterator[tuple[str, list[str]]]:
    """Names, filled to the same width, and the lines of their values; long names stand above narrow values."""
    indent = GAP if told.title else ""
    names = [clean_line(name) for name, _ in told.pairs]
    values = [clean(text_of(value)) for _, value in told.pairs]
    longest = max(map(cells, names), default=0)
    widest = max((cells(text) for value in values for text in value.split("\n")), default=0)
    room = None if width is None else width - len(indent) - longest - len(GAP)
    stacked = room is not None and width is not None and room < widest and longest > width // 3
    for name, value in zip(names, values, strict=True):
        if stacked and width is not None:
            yield f"{indent}{name}", []
            yield f"{indent}{GAP}", wrap(value, width - len(indent) - len(GAP))
        else:
            yield f"{indent}{pad(name, longest)}{GAP}", wrap(value, room)


def card(table: Table, row: tuple[Content, ...]) -> Facts:
    """One row of a table that is too wide, as facts; empty cells are left out."""
    return facts((column.title, cell) for column, cell in zip(table.columns, row, strict=True) if text_of(cell))


def _part(part: Part, width: int | None, glyphs: Glyphs) -> Iterator[str]:
    if isinstance(part, (Table, Facts, Items, Code)) and part.title:
        yield clean_line(part.title)
    if isinstance(part, Table):
        yield from _table(part, width) if fits(part, width) else _cards(part, width)
    elif isinstance(part, Facts):
        yield from _facts(part, width)
    elif isinstance(part, Items):
        yield from _items(part, width, glyphs)
    elif isinstance(part, Code):
        yield from clean(part.text).split("\n")
    elif isinstance(part, Paragraph):
        yield from wrap(clean(part.text), width or PROSE)
    else:
        yield from clean(part.text).strip("\n").split("\n")


def _table(table: Table, width: int | None) -> Iterator[str]:
    sizes = _fitted(table, width)
    rights = [column.align == "right" for column in table.columns]
    header = [clean_line(column.title) for column in table.columns]
    for row in (header, *([clean_line(text_of(cell)) for cell in row] for row in table.rows)):
        if width is None:
            yield _joined([pad(cell, size, right=right) for cell, size, right in zip(row, sizes, rights, strict=True)])
            continue
        wrapped = [wrap(cell, size) if cells(cell) > size else [cell] for cell, size in zip(row, sizes, strict=True)]
        for index in range(max(map(len, wrapped))):
            lines = [column[index] if index < len(column) else "" for column in wrapped]
            yield _joined([pad(cell, size, right=right) for cell, size, right in zip(lines, sizes, rights, strict=True)])


def _cards(table: Table, width: int | None) -> Iterator[str]:
    """A table that is too wide, row by row: one line a cell."""
    for number, row in enumerate(table.rows):
        if number:
            yield ""
        yield from _facts(card(table, row), width)


def _facts(told: Facts, width: int | None) -> Iterator[str]:
    for lead, lines in fact_lines(told, width):
        yield lead + (lines[0] if lines else "")
        yield from (" " * cells(lead) + text for text in lines[1:])


def _items(items: Items, width: int | None, glyphs: Glyphs) -> Iterator[str]:
    for number, item in enumerate(items.items, 1):
        first = f"{GAP}{number}. " if items.numbered else f"{GAP}{glyphs.bullet} "
        yield from wrap(clean(text_of(item)), width or PROSE, first=first)


def _sizes(table: Table) -> list[int]:
    contents = [[clean_line(text_of(row[index])) for row in table.rows] for index in range(len(table.columns))]
    return [
        max([cells(clean_line(column.title)), *(cells(text) for text in texts)])
        for column, texts in zip(table.columns, contents, strict=True)
    ]


def _fitted(table: Table, width: int | None) -> list[int]:
    sizes = _sizes(table)
    if width is None:
        return [
            max(min(size, WIDEST), cells(clean_line(column.title))) for column, size in zip(table.columns, sizes, strict=True)
        ]
    over = sum(sizes) + len(GAP) * (len(sizes) - 1) - width
    while over > 0:  # the widest wrapping column gives way first
        index = max((i for i, column in enumerate(table.columns) if column.wrap), key=lambda i: sizes[i], default=None)
        if index is None or sizes[index] <= 16:
            break
        sizes[index] -= 1
        over -= 1
    return sizes


def _joined(line: list[str]) -> str:
    return GAP.join(line).rstrip()
