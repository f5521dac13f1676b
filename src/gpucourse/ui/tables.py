"""The output of a command, as data: a `View` of a few kinds of parts. `render` draws it.

Text in a view may come from anywhere: the code that draws it cleans it. A style is a word of this program, never a colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Style = Literal["", "good", "bad", "warn", "dim", "strong", "accent"]
Align = Literal["left", "right"]


class Cell(NamedTuple):
    """A text with a style."""

    text: str
    style: Style = ""


Content = str | Cell


class Column(NamedTuple):
    """A column of a table. In a narrow terminal, cells that `wrap` use several lines, and `spare` columns are dropped first."""

    title: str
    align: Align = "left"
    style: Style = ""
    wrap: bool = False
    spare: bool = False


class Table(NamedTuple):
    """Rows of cells, one for each column. `total`: how many rows there are, if these are only some of them."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Content]]
    title: str = ""
    total: int = 0


class Facts(NamedTuple):
    """Names and values, one a line, the values aligned."""

    pairs: Sequence[tuple[str, Content]]
    title: str = ""


class Items(NamedTuple):
    """A list, each item after a bullet or, `numbered`, after its number from 1. `style`: that of items without one."""

    items: Sequence[Content]
    title: str = ""
    numbered: bool = False
    style: Style = ""


class Lines(NamedTuple):
    """Texts below each other, each wrapped by itself, with the lines after its first one indented."""

    rows: Sequence[Content]


class Paragraph(NamedTuple):
    """Running text."""

    text: str
    style: Style = ""


class Code(NamedTuple):
    """Lines to copy: never wrapped, never cut."""

    text: str
    title: str = ""


class Markdown(NamedTuple):
    """A lesson. Plain text keeps its source, which reads well by itself."""

    text: str


Block = Table | Facts | Items | Lines | Paragraph | Code | Markdown


class View(NamedTuple):
    """A whole screen: a heading, blocks with a blank line between them, quiet lines at the end, and what to do next. A block
    without content is not shown, not even its title.

    `headline` says in one line how it went: it is below the title, and --quiet shows nothing else. `next` is a command, or
    what to do. `mode` is the mode of the nodes of the view: for `local`, the console says once that these are simulated.
    """

    title: str = ""
    blocks: Sequence[Block] = ()
    footer: Sequence[str] = ()
    mode: str = ""
    headline: Cell | None = None
    next: str = ""


def right(title: str, *, wrap: bool = False, spare: bool = False) -> Column:
    """Make a column of numbers."""
    return Column(title, align="right", wrap=wrap, spare=spare)


def wrapped(title: str) -> Column:
    """Make a column of text that may use several lines."""
    return Column(title, wrap=True)


def strong(title: str) -> Column:
    """Make a column of names, which stand out."""
    return Column(title, style="strong")


def table(columns: Iterable[Column | str], rows: Iterable[Sequence[Content]], *, title: str = "") -> Table:
    """Make a table; a column that is only a title is aligned left."""
    return Table([column if isinstance(column, Column) else Column(column) for column in columns], list(rows), title)


def facts(pairs: Iterable[tuple[str, Content | None]], *, title: str = "") -> Facts:
    """Make facts, without those that have no value."""
    return Facts([(name, value) for name, value in pairs if value is not None and text_of(value)], title)


def has_content(block: Block) -> bool:
    """Return whether there is anything to show below the title of a block."""
    return bool(block.rows if isinstance(block, Table) else block[0])


def text_of(content: Content) -> str:
    """Return the text of a cell."""
    return content if isinstance(content, str) else content.text


def style_of(content: Content, default: Style = "") -> Style:
    """Return the style of a cell, or `otherwise` if it has none."""
    return default if isinstance(content, str) else content.style or default
