"""Use rich with this program's own names for styles, and make consoles that fit what their streams can show."""

from __future__ import annotations

from io import StringIO
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.theme import Theme

from gpucourse.ui.text import wrap

RANK_STYLES = 6  # neighbouring ranks differ clearly; red and yellow are reserved for things that went wrong
_PIPE_COLUMNS = 1 << 16  # nothing is wrapped
_THEME = Theme(
    {
        "good": "green",
        "bad": "bold red",
        "error": "red",
        "warn": "yellow",
        "dim": "dim",
        "strong": "bold",
        "accent": "cyan",
        "heading": "bold cyan",
        "rank0": "cyan",
        "rank1": "magenta",
        "rank2": "green",
        "rank3": "blue",
        "rank4": "bright_cyan",
        "rank5": "bright_magenta",
    }
)


Piece = str | tuple[str, str] | Text  # a text, with a style or plain


def line(*pieces: Piece) -> Text:
    """Make one line from pieces. It is shown unchanged, neither wrapped nor cut."""
    return Text.assemble(*pieces, no_wrap=True, overflow="ignore")


def wrap_line(row: Text, width: int) -> Text:
    """Break a line between words into rows of at most `width` columns, and indent the rows after the first. A text that already
    has several rows is returned unchanged."""
    if row.cell_len <= width or "\n" in row.plain:
        return row
    wrapped, at = Text(no_wrap=True, overflow="ignore"), 0
    for text in wrap(row.plain, width, indent="  "):
        body = text.strip()
        shown = body if body in row.plain else body.removesuffix(" \\")  # wrap continues a long command with a backslash
        start = row.plain.index(shown, at)
        wrapped.append(f"\n{text[: -len(text.lstrip())]}" if at else row.plain[:start])
        wrapped.append(row[start : start + len(shown)]).append(body[len(shown) :])
        at = start + len(shown)
    return wrapped


def paint(text: str, style: str) -> str:
    """Return the text in the ANSI colours of a style, without a console; this is for logs in a pipe."""
    return _THEME.styles[style].render(text)


def make_console(file: IO[str], *, width: int | None, colour: bool, record: bool = False) -> Console:
    """Make a console that writes to a file, for a terminal of `width` columns or, if `width` is None, for a pipe. Text is never
    markup."""
    return Console(
        file=file,
        width=width or _PIPE_COLUMNS,
        height=_PIPE_COLUMNS,
        color_system="standard" if colour else None,
        no_color=not colour,
        theme=_THEME,
        record=record,
        force_terminal=True,
        force_interactive=True,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )


def draw(*parts: RenderableType, width: int | None = None, colour: bool = False) -> str:
    """Return the parts as text, one below another, without spaces at the ends of lines."""
    page = StringIO()
    make_console(page, width=width, colour=colour).print(Group(*parts), crop=False)
    return "\n".join(row.rstrip() for row in page.getvalue().split("\n"))
