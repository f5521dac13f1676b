"""A view as text. One layout for a pipe and for a terminal; a terminal also gets its width, colours and drawn lessons.

Own code rather than rich: to import rich takes 40 ms, and `status` is promised within 100 (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpucourse.ui.glyphs import UNICODE, Glyphs
from gpucourse.ui.line import Line, Segment, ansi, line, plain
from gpucourse.ui.tables import (
    Block,
    Code,
    Column,
    Content,
    Facts,
    Items,
    Markdown,
    Paragraph,
    Table,
    View,
    facts,
    style_of,
    text_of,
)
from gpucourse.ui.text import cells, clean, clean_line, pad, wrap

GAP = "  "
PIPE_PROSE = 92  # columns of running text where nobody says how wide the reader's window is
WIDEST_PROSE = 110  # a longer line of text tires the eye, however wide the window is
WIDEST_CELL = 60  # in a pipe a longer cell does not push the columns of the other rows away
NARROWEST = 16  # a column that wraps gives way down to this


def render(view: View, *, width: int | None = None, colour: bool = False, glyphs: Glyphs = UNICODE) -> str:
    """The view as text that ends in a newline. `width` None (a pipe): tables and facts are as wide as they are."""
    blocks = [_part(part, width, colour, glyphs) for part in view.blocks]
    if view.title:
        blocks.insert(0, _write_lines([line(Segment(clean_line(view.title), "strong"))], colour))
    footer = [row for text in view.footer for row in wrap(clean(text), width)]
    blocks.append(_write_lines([line(Segment(row, "dim")) for row in footer], colour))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def fits(table: Table, width: int | None) -> bool:
    """Whether the table has room in that many columns, its wrapping columns at NARROWEST at least."""
    if width is None:
        return True
    columns = zip(table.columns, _sizes(table), strict=True)
    needed = sum(min(size, NARROWEST) if column.wrap else size for column, size in columns)
    return needed + len(_gap(width)) * (len(table.columns) - 1) <= width


def _part(part: Block, width: int | None, colour: bool, glyphs: Glyphs) -> list[str]:
    if isinstance(part, Markdown) and width is not None:
        from gpucourse.ui.prose import draw

        return draw(clean(part.text), width=min(width, WIDEST_PROSE), colour=colour)
    title = part.title if isinstance(part, (Table, Facts, Items, Code)) else ""
    head = [line(Segment(clean_line(title), "heading"))] if title else []
    return _write_lines([*head, *_lines(part, width, glyphs)], colour)


def _write_lines(lines: Sequence[Line], colour: bool) -> list[str]:
    return [ansi(content) if colour else plain(content) for content in lines]


def _lines(part: Block, width: int | None, glyphs: Glyphs) -> Iterator[Line]:
    if isinstance(part, Table):
        return _table(part, width, glyphs) if fits(part, width) else _cards(part, width)
    if isinstance(part, Facts):
        return _facts(part, width)
    if isinstance(part, Items):
        return _items(part, width, glyphs)
    if isinstance(part, Paragraph):
        return (line(Segment(text, part.style)) for text in wrap(clean(part.text), _prose_width(width)))
    text = clean(part.text)
    return (line(row) for row in (text.strip("\n") if isinstance(part, Markdown) else text).split("\n"))


def _table(table: Table, width: int | None, glyphs: Glyphs) -> Iterator[Line]:
    """Columns under their titles; a terminal gets a thin rule between, and columns three apart."""
    sizes, gap = _column_widths(table, width), _gap(width)
    yield from _row([Column(column.title, column.align, "dim") for column in table.columns], _titles(table), sizes, gap)
    if width is not None:
        yield line(Segment(glyphs.rule * (sum(sizes) + len(gap) * (len(sizes) - 1)), "dim"))
    for row in table.rows:
        yield from _row(table.columns, row, sizes, gap, folded=width is not None)


def _row(
    columns: Sequence[Column], row: Sequence[Content], sizes: Sequence[int], gap: str, *, folded: bool = False
) -> Iterator[Line]:
    texts = [clean_line(text_of(cell)) for cell in row]
    wrapped = [
        wrap(text, size, fold=True) if folded and cells(text) > size else [text]
        for text, size in zip(texts, sizes, strict=True)
    ]  # fmt: skip
    for index in range(max(map(len, wrapped))):
        segments: list[Segment] = []
        for column, cell, lines, size in zip(columns, row, wrapped, sizes, strict=True):
            text = lines[index] if index < len(lines) else ""
            space = Segment(" " * (size - cells(text)))
            content = Segment(text, style_of(cell, column.style))
            segments += [Segment(gap if segments else ""), *((space, content) if column.align == "right" else (content, space))]
        yield tuple(segments)


def _cards(table: Table, width: int | None) -> Iterator[Line]:
    """A table that is too wide, row by row: one line a cell, empty cells left out."""
    for number, row in enumerate(table.rows):
        if number:
            yield line("")
        pairs = zip(table.columns, row, strict=True)
        yield from _facts(facts((column.title, cell) for column, cell in pairs if text_of(cell)), width)


def _facts(part: Facts, width: int | None) -> Iterator[Line]:
    """Names, filled to the same width, and their values; long names stand above narrow values.

    A path longer than the line stays one word, which the terminal folds and copies whole.
    """
    indent = GAP if part.title else ""
    names = [clean_line(name) for name, _ in part.pairs]
    values = [clean(text_of(value)) for _, value in part.pairs]
    longest = max(map(cells, names), default=0)
    widest = max((cells(text) for value in values for text in value.split("\n")), default=0)
    room = None if width is None else width - len(indent) - longest - len(GAP)
    stacked = width is not None and room is not None and room < widest and longest > width // 3
    for name, value, (_, content) in zip(names, values, part.pairs, strict=True):
        lead = f"{indent}{pad(name, longest)}{GAP}"
        if stacked and width is not None:
            yield line(Segment(f"{indent}{name}", "dim"))
            lead, room = f"{indent}{GAP}", width - len(indent) - len(GAP)
        yield from _hang_lines(lead, wrap(value, room), content)


def _items(part: Items, width: int | None, glyphs: Glyphs) -> Iterator[Line]:
    marks = [f"{number}." if part.numbered else glyphs.bullet for number in range(1, len(part.items) + 1)]
    longest = max(map(len, marks), default=0)
    for mark, item in zip(marks, part.items, strict=True):
        lead = f"{GAP}{pad(mark, longest, right=True)} "
        yield from _hang_lines(lead, wrap(clean(text_of(item)), _prose_width(width) - cells(lead)), item)


def _hang_lines(lead: str, texts: Sequence[str], content: Content) -> Iterator[Line]:
    """Lines of one value: the first after its lead, the others below each other."""
    for number, text in enumerate(texts):
        yield line(Segment(" " * cells(lead) if number else lead, "dim"), Segment(text, style_of(content)))


def _prose_width(width: int | None) -> int:
    return PIPE_PROSE if width is None else min(width, WIDEST_PROSE)


def _gap(width: int | None) -> str:
    return GAP if width is None else GAP + " "


def _titles(table: Table) -> list[str]:
    return [clean_line(column.title) for column in table.columns]


def _sizes(table: Table) -> list[int]:
    """The columns' widths as their longest cells have them."""
    rows = [_titles(table), *([clean_line(text_of(cell)) for cell in row] for row in table.rows)]
    return [max(map(cells, texts)) for texts in zip(*rows, strict=True)]


def _column_widths(table: Table, width: int | None) -> list[int]:
    sizes = _sizes(table)
    if width is None:
        return [max(min(size, WIDEST_CELL), cells(title)) for size, title in zip(sizes, _titles(table), strict=True)]
    over = sum(sizes) + len(_gap(width)) * (len(sizes) - 1) - width
    while over > 0:  # the widest wrapping column gives way first; `fits` has said that this is enough
        index = max((i for i, column in enumerate(table.columns) if column.wrap), key=lambda i: sizes[i])
        sizes[index] -= 1
        over -= 1
    return sizes
