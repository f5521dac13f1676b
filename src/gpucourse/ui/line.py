"""One line of the live screen: pieces of text with a style each. Plain ANSI writes it: rich is too slow for logs."""

from __future__ import annotations

from typing import NamedTuple

from gpucourse.ui.text import cells, clip

# A style is a word; behind it stand the ANSI code for the terminal and rich's name for the recorded screen.
_STYLES = {
    "": ("", ""),
    "good": ("32", "green"),
    "bad": ("1;31", "bold red"),
    "warn": ("33", "yellow"),
    "dim": ("2", "dim"),
    "strong": ("1", "bold"),
    "accent": ("36", "cyan"),
}
# Ranks side by side differ clearly; red and yellow are kept for what went wrong.
_RANKS = (("36", "cyan"), ("35", "magenta"), ("32", "green"), ("34", "blue"), ("96", "bright_cyan"), ("95", "bright_magenta"))


class Span(NamedTuple):
    """A piece of a line. `style` is a word of this module, or `rank3`."""

    text: str
    style: str = ""


Line = tuple[Span, ...]


def line(*pieces: str | Span) -> Line:
    """A line of spans and plain texts."""
    return tuple(piece if isinstance(piece, Span) else Span(piece) for piece in pieces)


def plain(content: Line) -> str:
    """The text alone."""
    return "".join(span.text for span in content).rstrip()


def ansi(content: Line) -> str:
    """The line with ANSI colours."""
    return "".join(painted(span.text, span.style) for span in content)


def painted(text: str, style: str) -> str:
    """The text in one style's ANSI colours."""
    code = _known(style)[0]
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def rich_style(style: str) -> str:
    """What rich calls this style."""
    return _known(style)[1]


def clipped(content: Line, width: int, ellipsis: str) -> Line:
    """The line in at most `width` columns."""
    kept: list[Span] = []
    for span in content:
        room = width - sum(cells(piece.text) for piece in kept)
        if cells(span.text) > room:
            kept.append(Span(clip(span.text, room, ellipsis), span.style))
            break
        kept.append(span)
    return tuple(kept)


def _known(style: str) -> tuple[str, str]:
    return _RANKS[int(style[4:]) % len(_RANKS)] if style.startswith("rank") else _STYLES[style]
