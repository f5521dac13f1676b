"""A view as rich draws it on a terminal. Imported only when something really is drawn: importing rich costs 40 ms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO

from rich import box
from rich.console import Console, ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from gpucourse.ui.glyphs import UNICODE, Glyphs
from gpucourse.ui.plain import card, fact_lines, fits
from gpucourse.ui.tables import Code, Content, Facts, Items, Markdown, Paragraph, Part, Style, Table, View, style_of, text_of
from gpucourse.ui.text import cells, clean, clean_line

STYLES: dict[Style, str] = {
    "": "",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "dim": "dim",
    "strong": "bold",
    "accent": "cyan",
}
WIDEST = 110  # a line of text longer than this tires the eye, however wide the window is


def render(view: View, *, width: int, colour: bool, glyphs: Glyphs = UNICODE) -> str:
    """The view as text with ANSI colours (`colour` False: with bold and the like only), ending in a newline."""
    page = StringIO()
    console = Console(
        file=page,
        width=width,
        force_terminal=True,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(drawn(view, width=width, glyphs=glyphs), crop=False)
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n"))


def drawn(view: View, *, width: int, glyphs: Glyphs = UNICODE) -> Group:
    """The view as something that rich prints."""
    blocks: list[ConsoleRenderable] = []
    if view.title:
        blocks.append(Text(clean_line(view.title), style="bold"))
    blocks.extend(Group(*_part(part, width, glyphs)) for part in view.parts)
    if view.footer:
        blocks.append(Text("\n".join(clean(line) for line in view.footer), style="dim"))
    return Group(*_spaced(blocks))


def _spaced(blocks: Iterable[ConsoleRenderable]) -> Iterator[ConsoleRenderable]:
    for number, block in enumerate(blocks):
        if number:
            yield Text("")
        yield block


def _part(part: Part, width: int, glyphs: Glyphs) -> Iterator[ConsoleRenderable]:
    if isinstance(part, (Table, Facts, Items, Code)) and part.title:
        yield Text(clean_line(part.title), style="bold cyan")
    if isinstance(part, Table):
        between = len(part.columns) - 1  # here columns are three apart, and two in plain text
        yield _table(part, glyphs) if fits(part, width - between) else _cards(part, width)
    elif isinstance(part, Facts):
        yield _facts(part, width)
    elif isinstance(part, Items):
        yield Padding(_items(part, glyphs), (0, 0, 0, 2))
    elif isinstance(part, Code):
        yield Text(clean(part.text), no_wrap=True, overflow="ignore")
    elif isinstance(part, Paragraph):
        yield _bounded(Text(clean(part.text), style=STYLES[part.style]), width)
    elif isinstance(part, Markdown):
        from gpucourse.ui.prose import Prose

        yield _bounded(Prose(clean(part.text), code_theme="ansi_dark", hyperlinks=False), width)


def _bounded(content: ConsoleRenderable, width: int) -> Padding:
    return Padding(content, (0, max(0, width - WIDEST), 0, 0))


def _table(table: Table, glyphs: Glyphs) -> RichTable:
    """Columns under a thin rule; nothing else is drawn."""
    grid = RichTable(box=_rule(glyphs), show_edge=False, pad_edge=False, header_style="dim", border_style="dim")
    for column in table.columns:
        grid.add_column(
            Text(clean_line(column.title)),
            justify=column.align,
            no_wrap=not column.wrap,
            overflow="fold",
            style=STYLES[column.style],
            min_width=16 if column.wrap else None,
        )
    for row in table.rows:
        grid.add_row(*(_text(cell) for cell in row))
    return grid


def _cards(table: Table, width: int) -> Group:
    """A table that is too wide, row by row: one line a cell."""
    return Group(*_spaced(_facts(card(table, row), width) for row in table.rows))


def _facts(facts: Facts, width: int) -> Text:
    """Laid out like plain text: a path longer than the line stays one word, which the terminal folds and copies whole."""
    page = Text(no_wrap=True, overflow="ignore", end="")
    styles = iter(STYLES[style_of(value)] for _, value in facts.pairs)
    for lead, lines in fact_lines(facts, width):
        page.append(lead, style="dim")
        page.append(f"\n{' ' * cells(lead)}".join(lines), style=next(styles) if lines else "")
        page.append("\n")
    return page


def _items(items: Items, glyphs: Glyphs) -> RichTable:
    grid = RichTable.grid(padding=(0, 1, 0, 0))
    grid.add_column(style="dim", no_wrap=True, justify="right")
    grid.add_column(overflow="fold", max_width=WIDEST)
    for number, item in enumerate(items.items, 1):
        grid.add_row(f"{number}." if items.numbered else glyphs.bullet, _text(item, one_line=False))
    return grid


def _text(content: Content, *, one_line: bool = True) -> Text:
    text = text_of(content)
    return Text(clean_line(text) if one_line else clean(text), style=STYLES[style_of(content)])


def _rule(glyphs: Glyphs) -> box.Box:
    line = f" {glyphs.rule}{glyphs.rule} "
    return box.Box(f"    \n    \n{line}\n    \n    \n    \n    \n    \n", ascii=glyphs.rule.isascii())
