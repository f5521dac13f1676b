"""The output of a command, as data: a `View` made of a few kinds of blocks. `render` draws it.

Text in a view may come from anywhere, so the code that draws it cleans it. A style is one of this program's names, never a
colour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

Style = Literal["", "good", "bad", "warn", "dim", "strong", "accent"]
Align = Literal["left", "right"]


class Cell(NamedTuple):
    """A text with a style."""

    text: str
    style: Style = ""


Content = str | Cell


class Column(NamedTuple):
    """A column of a table. On a narrow terminal, cells use several lines if `wrap` is set, and columns with `spare` set are
    dropped first."""

    title: str
    align: Align = "left"
    style: Style = ""
    wrap: bool = False
    spare: bool = False


class Table(NamedTuple):
    """Rows with one cell for each column. `total` is the number of all rows, if the table has only some of them. `keep` has the
    indexes of rows that stay when the table is shortened. `whole`: on a terminal that is too narrow, each cell is shown on a
    line of its own, and no column is dropped unless it is spare."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Content]]
    title: str = ""
    total: int = 0
    keep: Collection[int] = ()
    whole: bool = False


class Facts(NamedTuple):
    """Names and values, one pair on each line, with the values aligned."""

    pairs: Sequence[tuple[str, Content]]
    title: str = ""


class Items(NamedTuple):
    """A list. Before each item is a bullet or, if `numbered` is set, a number from 1. `style` is the style of items that set
    none themselves."""

    items: Sequence[Content]
    title: str = ""
    numbered: bool = False
    style: Style = ""


class Lines(NamedTuple):
    """Texts, one below another. Each text is wrapped separately, and all its lines except the first are indented."""

    rows: Sequence[Content]


class Paragraph(NamedTuple):
    """Running text."""

    text: str
    style: Style = ""


class Code(NamedTuple):
    """Lines to copy, which are never wrapped or cut. With `are_commands`, a terminal shows a long command on several lines
    that a shell reads as one.
    """

    text: str
    title: str = ""
    are_commands: bool = False


class Markdown(NamedTuple):
    """A lesson. As plain text it stays Markdown, which is easy to read unformatted."""

    text: str


Block = Table | Facts | Items | Lines | Paragraph | Code | Markdown


class View(NamedTuple):
    """A whole screen: a heading, blocks with a blank line between them, dim lines at the end, and what to do next. A block
    without content is not shown, not even its title.

    `headline` says in one line how the command went; it is below the title, and --quiet shows nothing else. `next` is a
    command, or says what to do. `mode` is the mode of the nodes in the view: for `local`, the console says once that they are
    simulated.
    """

    title: str = ""
    blocks: Sequence[Block] = ()
    footer: Sequence[str] = ()
    mode: str = ""
    headline: Cell | None = None
    next: str = ""


def number_column(title: str, *, wrap: bool = False, spare: bool = False) -> Column:
    """Make a column of numbers."""
    return Column(title, align="right", wrap=wrap, spare=spare)


def text_column(title: str) -> Column:
    """Make a column of text that may use several lines."""
    return Column(title, wrap=True)


def name_column(title: str) -> Column:
    """Make a column of names, which are shown in a style that stands out."""
    return Column(title, style="strong")


def table(columns: Iterable[Column | str], rows: Iterable[Sequence[Content]], *, title: str = "") -> Table:
    """Make a table. A column that is given only as a title is aligned left."""
    return Table([column if isinstance(column, Column) else Column(column) for column in columns], list(rows), title)


def facts(pairs: Iterable[tuple[str, Content | None]], *, title: str = "") -> Facts:
    """Make facts, leaving out those that have no value."""
    return Facts([(name, value) for name, value in pairs if value is not None and text_of(value)], title)


def has_content(block: Block) -> bool:
    """Return whether there is anything to show below the title of a block."""
    return bool(block.rows if isinstance(block, Table) else block[0])


def text_of(content: Content) -> str:
    """Return the text of a cell."""
    return content if isinstance(content, str) else content.text


def style_of(content: Content, default: Style = "") -> Style:
    """Return the style of a cell, or `default` if it has none."""
    return default if isinstance(content, str) else content.style or default
