"""Markdown drawn by rich, with headings as in a book. Imported only for lessons: rich needs 40 ms and this 30 more."""

from __future__ import annotations

from io import StringIO
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading as HeadingElement
from rich.markdown import ImageItem, Markdown, MarkdownElement
from rich.text import Text


class _Heading(HeadingElement):
    """A heading on the left, as in a book; rich centres the first two levels and draws boxes around them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        text.stylize("bold cyan" if self.tag in {"h1", "h2"} else "bold")
        yield text


class _Picture(ImageItem):
    """A picture in a terminal: its path, and in words what it shows."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(("Picture ", "bold"), (self.destination, "cyan"), ": ", self.text, end="")


class _Lesson(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = Markdown.elements | {"heading_open": _Heading, "image": _Picture}


def draw(text: str, *, width: int, colour: bool) -> list[str]:
    """Return the lines of a (clean) lesson, at most `width` columns wide; without `colour` they hold no escape sequence."""
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
    )
    console.print(_Lesson(text, code_theme="ansi_dark", hyperlinks=False), crop=False)
    return [line.rstrip() for line in page.getvalue().strip("\n").split("\n")]
