"""A view as text. One layout for a pipe and for a terminal; a terminal also gets its width, colours and drawn lessons.

Own code rather than rich, which draws only lessons (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.line import Line, Segment, ansi, line, plain
from gpucourse.ui.table_layout import GAP, lay_out, titles
from gpucourse.ui.tables import (
    Block,
    Code,
    Column,
    Content,
    Facts,
    Items,
    Lines,
    Markdown,
    Paragraph,
    Table,
    View,
    style_of,
    text_of,
)
from gpucourse.ui.text import cells, clean, clean_line, pad, wrap

NEXT = "Next: "
PIPE_PROSE = 92  # columns of running text if the width of the reader's window is not known
WIDEST_PROSE = 110  # a longer line of text tires the eye, however wide the window is


def render(view: View, *, width: int | None = None, colour: bool = False) -> str:
    """Return the view as text that ends in a newline. `width` None (a pipe): tables and facts are as wide as they need."""
    blocks = [_part(part, width, colour) for part in view.blocks]
    head = [line(Segment(row, "strong")) for row in wrap(clean_line(view.title), width)] if view.title else []
    if view.headline is not None:
        head += _rows(Lines((view.headline,)), width)
    foot = [line(Segment(row, "dim")) for text in view.footer for row in wrap(clean(text), width)]
    if view.next:
        rows = wrap(clean(view.next), width, first=NEXT)
        foot.append(line(Segment(NEXT, "strong"), Segment(rows[0].removeprefix(NEXT), "heading")))
        foot += [line(Segment(row, "heading")) for row in rows[1:]]
    blocks = [_write_lines(head, colour), *blocks, _write_lines(foot, colour)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _part(part: Block, width: int | None, colour: bool) -> list[str]:
    if isinstance(part, Markdown) and width is not None:
        from gpucourse.ui.prose import draw

        return draw(clean(part.text), width=min(width, WIDEST_PROSE), colour=colour)
    title = part.title if isinstance(part, (Table, Facts, Items, Code)) else ""
    head = [line(Segment(row, "heading")) for row in wrap(clean_line(title), width)] if title else []
    return _write_lines([*head, *_lines(part, width)], colour)


def _write_lines(lines: Sequence[Line], colour: bool) -> list[str]:
    return [ansi(content) if colour else plain(content) for content in lines]


def _lines(part: Block, width: int | None) -> Iterator[Line]:
    if isinstance(part, Table):
        return _table(part, width)
    if isinstance(part, Facts):
        return _facts(part, width)
    if isinstance(part, Items):
        return _items(part, width)
    if isinstance(part, Lines):
        return _rows(part, width)
    if isinstance(part, Paragraph):
        return (line(Segment(text, part.style)) for text in wrap(clean(part.text), _prose_width(width)))
    text = clean(part.text)
    return (line(row) for row in (text.strip("\n") if isinstance(part, Markdown) else text).split("\n"))


def _table(table: Table, width: int | None) -> Iterator[Line]:
    """Yield columns under their titles; a terminal gets a thin rule between, and a line about columns that have no room."""
    table, sizes, gap, left_out = lay_out(table, width)
    heads = [Column(column.title, column.align, "dim") for column in table.columns]
    yield from _row(heads, titles(table), sizes, gap, folded=width is not None, low=True)
    if width is not None:
        yield line(Segment(UNICODE.bar_left * (sum(sizes) + len(gap) * (len(sizes) - 1)), "dim"))
    for row in table.rows:
        yield from _row(table.columns, row, sizes, gap, folded=width is not None)
    if left_out:
        note = f"no room for: {', '.join(left_out)}"
        yield from (line(Segment(row, "dim")) for row in wrap(note, width))


def _row(
    columns: Sequence[Column],
    row: Sequence[Content],
    sizes: Sequence[int],
    gap: str,
    *,
    folded: bool = False,
    low: bool = False,
) -> Iterator[Line]:
    """Yield the lines of one row; if cells are of unequal height, those of a `low` row are at its foot."""
    texts = [clean_line(text_of(cell)) for cell in row]
    wrapped = [
        wrap(text, size, fold=True) if folded and cells(text) > size else [text]
        for text, size in zip(texts, sizes, strict=True)
    ]  # fmt: skip
    height = max(map(len, wrapped))
    if low:
        wrapped = [[""] * (height - len(lines)) + lines for lines in wrapped]
    for index in range(height):
        segments: list[Segment] = []
        for column, cell, lines, size in zip(columns, row, wrapped, sizes, strict=True):
            text = lines[index] if index < len(lines) else ""
            space = Segment(" " * (size - cells(text)))
            content = Segment(text, style_of(cell, column.style))
            segments += [Segment(gap if segments else ""), *((space, content) if column.align == "right" else (content, space))]
        yield tuple(segments)


def _facts(part: Facts, width: int | None) -> Iterator[Line]:
    """Yield names, filled to the same width, and their values; long names are above their values if these have little room.

    A path longer than the line stays one word, which the terminal wraps and copies whole.
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


def _items(part: Items, width: int | None) -> Iterator[Line]:
    marks = [f"{number}." if part.numbered else UNICODE.bullet for number in range(1, len(part.items) + 1)]
    longest = max(map(len, marks), default=0)
    for mark, item in zip(marks, part.items, strict=True):
        lead = f"{GAP}{pad(mark, longest, right=True)} "
        yield from _hang_lines(lead, wrap(clean(text_of(item)), _prose_width(width) - cells(lead)), item)


def _rows(part: Lines, width: int | None) -> Iterator[Line]:
    for content in part.rows:
        for row in wrap(clean(text_of(content)), width, rest=GAP):
            yield line(Segment(row, style_of(content)))


def _hang_lines(lead: str, texts: Sequence[str], content: Content) -> Iterator[Line]:
    """Yield the lines of one value: the first after its lead, the others below each other."""
    for number, text in enumerate(texts):
        yield line(Segment(" " * cells(lead) if number else lead, "dim"), Segment(text, style_of(content)))


def _prose_width(width: int | None) -> int:
    return PIPE_PROSE if width is None else min(width, WIDEST_PROSE)
