"""Draw a view as text with rich. The layout is the same for a pipe and a terminal. For a terminal, the text is also fitted to
the width and coloured, and lessons are formatted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.constrain import Constrain
from rich.segment import Segment, Segments
from rich.table import Table as Grid
from rich.text import Text

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.styles import draw, line
from gpucourse.ui.table_layout import GAP, lay_out
from gpucourse.ui.tables import (
    Block,
    Code,
    Facts,
    Items,
    Lines,
    Markdown,
    Paragraph,
    Table,
    View,
    has_content,
    style_of,
    text_of,
)
from gpucourse.ui.text import clean, clean_line, has_code_marks, pad, strip_code_marks, wrap, wrap_command

NEXT = "Next: "
PIPE_PROSE = 92  # columns of running text if the width of the reader's window is unknown
_MARKS = re.compile(r" *[~^]+ *")  # what Python prints below the line of code in which an error is
_CUT = "..."  # in place of code that has no room; not a sign, because it must be as wide in ASCII
MAX_PROSE = 110  # longer lines are tiring to read, however wide the window is


def render(view: View, *, width: int | None = None, colour: bool = False) -> str:
    """Return the view as text that ends in a newline. If `width` is None (a pipe), tables and facts are as wide as they need to
    be."""
    parts = [_head(view, width), *(_block(part, width) for part in view.blocks if has_content(part)), _foot(view, width)]
    texts = [draw(*part, width=width, colour=colour) for part in parts]
    return "\n".join(text for text in texts if text)


def _head(view: View, width: int | None) -> Iterator[Text]:
    if view.title:
        yield from _texts(wrap(clean_line(view.title), width), "strong")
    if view.headline is not None:
        yield from _rows(Lines((view.headline,)), width)


def _foot(view: View, width: int | None) -> Iterator[Text]:
    for text in view.footer:
        yield from _texts(wrap(clean(text), width), "dim")
    if view.next:
        first, *rows = wrap(clean(view.next), width, first=NEXT)
        yield line((NEXT, "strong"), (first.removeprefix(NEXT), "heading"))
        yield from _texts(rows, "heading")


def _block(part: Block, width: int | None) -> Iterator[RenderableType]:
    if isinstance(part, (Table, Facts, Items, Code)) and part.title:
        yield from _texts(wrap(clean_line(part.title), width), "heading")
    if isinstance(part, Table):
        yield from _table(part, width)
    elif isinstance(part, Facts):
        yield from _facts(part, width)
    elif isinstance(part, Items):
        yield from _items(part, width)
    elif isinstance(part, Lines):
        yield from _rows(part, width)
    elif isinstance(part, Paragraph):
        yield from _texts(_wrap_words(part.text, _prose_width(width)), part.style)
    elif isinstance(part, Markdown) and width is not None:
        from gpucourse.ui.prose import Lesson

        yield Constrain(Lesson(clean(part.text)), _prose_width(width))
    else:  # exactly these characters, including tabs
        text = clean(part.text)
        if isinstance(part, Code) and part.are_commands and width is not None:
            text = "\n".join(row for command in text.split("\n") for row in wrap_command(command, width))
        elif isinstance(part, Code) and width is not None:
            text = _cut_marked_lines(text, width)
        yield Segments([Segment(text.strip("\n") if isinstance(part, Markdown) else text)], new_lines=True)


def _cut_marked_lines(text: str, width: int) -> str:
    """Return the text with shorter lines of code: a line that is wider than the terminal, and that has carets below it as in a
    traceback, is cut to the part around the carets. The terminal would break it, and the carets would point elsewhere."""
    lines = text.split("\n")
    for index, (source, marks) in enumerate(pairwise(lines)):
        if cell_len(source) <= width or not _MARKS.fullmatch(marks):
            continue
        column = len(marks) - len(marks.lstrip())
        begin = max(0, min(column - width // 3, len(source) - width))
        lead, tail = _CUT if begin else "", _CUT if begin + width < len(source) else ""
        lines[index] = f"{lead}{source[begin + len(lead) : begin + width - len(tail)]}{tail}"
        lines[index + 1] = marks[begin : begin + width]
    return "\n".join(lines)


def _table(table: Table, width: int | None) -> Iterator[RenderableType]:
    """Yield columns under their titles. On a terminal, put a thin rule below the titles, and name the columns that did not
    fit, in a line below the table.
    """
    table, sizes, left_out = lay_out(table, width)
    ruled = width is not None
    grid = Grid(
        box=box.SIMPLE_HEAD if ruled else None,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - ruled, 0, 0),  # the rule counts as one column between two others
        header_style="",
        border_style="dim",
    )
    for column, size in zip(table.columns, sizes, strict=True):
        grid.add_column(Text(clean_line(column.title), "dim"), justify=column.align, width=size, overflow="fold")
    for row in table.rows:
        contents = zip(row, table.columns, strict=True)
        grid.add_row(
            *(Text(clean_line(strip_code_marks(text_of(cell))), style_of(cell, column.style)) for cell, column in contents)
        )
    yield grid
    if left_out:
        yield from _texts(wrap(f"no room for: {', '.join(left_out)}", width), "dim")


def _facts(part: Facts, width: int | None) -> Iterator[Text]:
    """Yield names, padded to the same width, and their values. If little space is left for the values, long names are put on a
    line above them. A name is also put there if a path does not fit next to it.

    A path that is longer than the line is not broken, so that it can be copied whole.
    """
    indent = " " * GAP if part.title else ""
    names = [clean_line(name) for name, _ in part.pairs]
    values = [text_of(value) for _, value in part.pairs]
    longest = max(map(cell_len, names), default=0)
    widest = max((cell_len(row) for value in values for row in _wrap_words(value, None)), default=0)
    room = None if width is None else width - len(indent) - longest - GAP
    stacked = width is not None and room is not None and room < widest and longest > width // 3
    for name, value, (_, content) in zip(names, values, part.pairs, strict=True):
        lead, value_room = f"{indent}{pad(name, longest)}{' ' * GAP}", room
        if width is not None and room is not None and (stacked or max(map(cell_len, clean(value).split()), default=0) > room):
            yield from _texts(wrap(name, width, first=indent), "dim")
            lead, value_room = f"{indent}{' ' * GAP}", width - len(indent) - GAP
        yield from _hang_lines(lead, _wrap_words(value, value_room), style_of(content))


def _items(part: Items, width: int | None) -> Iterator[Text]:
    marks = [f"{number}." if part.numbered else UNICODE.bullet for number in range(1, len(part.items) + 1)]
    longest = max(map(len, marks), default=0)
    for mark, item in zip(marks, part.items, strict=True):
        lead = f"{' ' * GAP}{mark:>{longest}} "
        yield from _hang_lines(
            lead, _wrap_words(text_of(item), _prose_width(width) - cell_len(lead)), style_of(item, part.style)
        )


def _rows(part: Lines, width: int | None) -> Iterator[Text]:
    for content in part.rows:
        yield from _texts(_wrap_words(text_of(content), width, indent=" " * GAP), style_of(content))


def _wrap_words(text: str, width: int | None, *, indent: str | None = None) -> list[str]:
    """Return the lines of a text from outside, without the backticks around code."""
    rows = wrap(clean(text), width, indent=indent)
    return [row.replace("`", "") for row in rows] if has_code_marks(text) else rows


def _hang_lines(lead: str, texts: Sequence[str], style: str) -> Iterator[Text]:
    """Yield the lines of one value: the first line after its lead, the others aligned below it."""
    for number, text in enumerate(texts):
        yield line((" " * cell_len(lead) if number else lead, "dim"), (text, style))


def _texts(rows: Sequence[str], style: str) -> Iterator[Text]:
    return (line((row, style)) for row in rows)


def _prose_width(width: int | None) -> int:
    return PIPE_PROSE if width is None else min(width, MAX_PROSE)
