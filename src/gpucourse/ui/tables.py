"""What a command shows, as data: a `View` of a few kinds of parts. Drawn as rich text on a terminal, as plain text in a pipe.

Text in a view may come from anywhere: whoever draws it cleans it. A style is a word of this program, never a colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Union

Style = Literal["", "good", "bad", "warn", "dim", "strong", "accent"]
Align = Literal["left", "right"]


@dataclass(frozen=True)
class Cell:
    """A text with a style."""

    text: str
    style: Style = ""


Content = Union[str, Cell]  # noqa: UP007  evaluated when the program runs, also on Python 3.10


@dataclass(frozen=True)
class Column:
    """A column of a table. Only columns that `wrap` give way where the terminal is narrow."""

    title: str
    align: Align = "left"
    style: Style = ""
    wrap: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells, one for each column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Content, ...], ...]
    title: str = ""

    def __post_init__(self) -> None:
        wrong = next((row for row in self.rows if len(row) != len(self.columns)), None)
        if wrong is not None:
            raise ValueError(f"a row of {len(wrong)} cells in a table of {len(self.columns)} columns")


@dataclass(frozen=True)
class Facts:
    """Names and values, one a line, the values aligned."""

    pairs: tuple[tuple[str, Content], ...]
    title: str = ""


@dataclass(frozen=True)
class Items:
    """A list. With `numbered` counted from 1, with a mark its own sign (and style), else a bullet."""

    items: tuple[Content, ...]
    title: str = ""
    numbered: bool = False


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str
    style: Style = ""


@dataclass(frozen=True)
class Code:
    """Lines to copy: never wrapped, never cut."""

    text: str
    title: str = ""


@dataclass(frozen=True)
class Markdown:
    """A lesson. Plain text keeps its source, which reads well by itself."""

    text: str


Part = Union[Table, Facts, Items, Paragraph, Code, Markdown]  # noqa: UP007


@dataclass(frozen=True)
class View:
    """A whole screen: a heading, parts with a blank line between them, quiet lines at the end.

    `mode` is the mode of the nodes it speaks of: `local` makes the face say once that these are simulated.
    """

    title: str = ""
    parts: tuple[Part, ...] = ()
    footer: tuple[str, ...] = ()
    mode: str = ""


def table(columns: Iterable[Column | str], rows: Iterable[Sequence[Content]], *, title: str = "") -> Table:
    """A table; a column that is only a title is aligned left."""
    made = tuple(column if isinstance(column, Column) else Column(column) for column in columns)
    return Table(made, tuple(tuple(row) for row in rows), title)


def facts(pairs: Iterable[tuple[str, Content | None]], *, title: str = "") -> Facts:
    """Facts without those that have no value."""
    return Facts(tuple((name, value) for name, value in pairs if value not in {None, ""}), title)


def text_of(content: Content) -> str:
    """The text of a cell."""
    return content if isinstance(content, str) else content.text


def style_of(content: Content, otherwise: Style = "") -> Style:
    """The style of a cell."""
    return otherwise if isinstance(content, str) else content.style or otherwise
