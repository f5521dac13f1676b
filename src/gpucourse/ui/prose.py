"""Draw lessons in Markdown with rich, with headings as in a book. This is a separate module because its import takes 30 ms."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading as HeadingElement
from rich.markdown import ImageItem, Markdown, MarkdownElement
from rich.text import Text


class _Heading(HeadingElement):
    """A heading on the left, as in a book. rich would centre the first two levels and draw boxes around them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        text.stylize("heading" if self.tag in {"h1", "h2"} else "strong")
        yield text


class _Picture(ImageItem):
    """A picture in a terminal: its path, and a description of what it shows."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(("Picture ", "strong"), (self.destination, "accent"), ": ", self.text, end="")


class Lesson(Markdown):
    """A lesson to draw, made from Markdown that has already been cleaned."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = Markdown.elements | {"heading_open": _Heading, "image": _Picture}

    def __init__(self, text: str) -> None:
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)
