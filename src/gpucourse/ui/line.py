"""One line on the screen: pieces of text with a style each. Written as plain ANSI, without rich: see docs/architecture.md."""

from __future__ import annotations

from typing import NamedTuple

from gpucourse.ui.text import cells, clip, wrap

# The ANSI code of each style.
_STYLES = {
    "": "",
    "good": "32",
    "bad": "1;31",
    "error": "31",
    "warn": "33",
    "dim": "2",
    "strong": "1",
    "accent": "36",
    "heading": "1;36",
}
# Ranks side by side differ clearly; red and yellow are kept for what went wrong.
_RANKS = ("36", "35", "32", "34", "96", "95")


class Segment(NamedTuple):
    """A piece of a line. `style` is a word of this module, or `rank3`."""

    text: str
    style: str = ""


Line = tuple[Segment, ...]


def line(*pieces: str | Segment) -> Line:
    """Make a line of segments and plain texts."""
    return tuple(piece if isinstance(piece, Segment) else Segment(piece) for piece in pieces)


def plain(content: Line) -> str:
    """Return the text alone."""
    return "".join(segment.text for segment in content).rstrip()


def ansi(content: Line) -> str:
    """Return the line with ANSI colours."""
    return "".join(paint(segment.text, segment.style) for segment in content).rstrip()


def paint(text: str, style: str) -> str:
    """Return the text in one style's ANSI colours."""
    code = _RANKS[int(style[4:]) % len(_RANKS)] if style.startswith("rank") else _STYLES[style]
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def cut(content: Line, width: int, ellipsis: str) -> Line:
    """Cut the line to at most `width` columns."""
    kept: list[Segment] = []
    for segment in content:
        room = width - sum(cells(piece.text) for piece in kept)
        if cells(segment.text) > room:
            kept.append(Segment(clip(segment.text, room, ellipsis), segment.style))
            break
        kept.append(segment)
    return tuple(kept)


def wrap_log_line(content: Line, width: int) -> list[Line]:
    """Break a line of a log into rows of at most `width` columns, those after the first below its text. Its prefix and a space
    come first. A word that is wider stays whole, since paths are copied."""
    if cells(plain(content)) <= width:
        return [content]
    prefix, space, text, *rest = content
    indent = " " * cells(prefix.text + space.text)
    first, *others = wrap(text.text, width, first=indent)
    rows = [(prefix, space, Segment(first[len(indent) :], text.style)), *((Segment(row, text.style),) for row in others)]
    return [*rows[:-1], (*rows[-1], *rest)]
