"""Markdown as rich draws it, with headings as a book has them. Imported only for lessons and hints: it takes 20 ms."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading as HeadingElement
from rich.markdown import Markdown, MarkdownElement


class _Heading(HeadingElement):
    """A heading on the left, as a book has it; rich centres the first two levels and draws boxes around them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        text.stylize("bold cyan" if self.tag in {"h1", "h2"} else "bold")
        yield text


class Prose(Markdown):
    """A lesson's text."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = Markdown.elements | {"heading_open": _Heading}
