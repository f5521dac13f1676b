"""The region at the foot of the terminal whose lines change in place; what is finished scrolls away above it.

One write per frame, and every line is overwritten rather than erased first: nothing flickers. rich's own live display would
do the same with 17 times the processor time, beside ranks that need every processor (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.ui.glyphs import ASCII_ELLIPSIS, UNICODE
from gpucourse.ui.line import Line, ansi, cut, plain
from gpucourse.ui.out import Out
from gpucourse.ui.text import cells

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"  # synchronised output; terminals that do not know it ignore it
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


class Region:
    """Paints frames on one terminal. Not thread-safe: its owner paints from one thread at a time."""

    def __init__(self, out: Out, *, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._painted: list[int] = []  # columns of each line that is there now
        self._hidden = False
        self._page = out.apart, out.written_at  # of what stays on the terminal

    def paint(self, above: Sequence[str], lines: Sequence[Line]) -> None:
        """Let `above` (finished lines, already coloured) scroll away and show `lines` below them."""
        width, height = self._out.size()
        if not self._painted:
            self._page = self._out.apart, self._out.written_at
        frame = [self._home(width)]
        if above:
            frame.append("\x1b[J")  # a finished line may wrap over several rows
            frame.extend(f"{text}\n" for text in above)
        room = width - len(ASCII_ELLIPSIS if self._out.ascii else UNICODE.ellipsis)  # the last column stays empty
        shown = [cut(content, room, UNICODE.ellipsis) for content in lines[: max(1, height - 1)]]
        frame.append("\x1b[K\n".join(ansi(content) if self._colour else plain(content) for content in shown))
        frame.append("\x1b[J" if shown else "\r\x1b[J")
        cursor = _HIDE if shown and not self._hidden else _SHOW if self._hidden and not shown else ""
        self._hidden = bool(shown)
        self._painted = [cells(plain(content)) for content in shown]
        self._out.write(f"{_BEGIN}{''.join(frame)}{cursor}{_END}")
        if above:
            self._page = not above[-1], self._out.written_at
        if not shown:  # nothing of the region is left, so the page is as it was
            self._out.apart, self._out.written_at = self._page

    def clear(self) -> str:
        """Return the codes that remove the region and show the cursor again, for text that is written instead of a frame."""
        home, self._painted = self._home(self._out.size()[0]), []
        return f"{home}\x1b[J{_SHOW}"

    def _home(self, width: int) -> str:
        """Return the codes that move the cursor to the first row of the region; a terminal that was made narrower since has
        wrapped its lines."""
        rows = sum(max(1, -(-columns // width)) for columns in self._painted)
        return f"\r\x1b[{rows - 1}A" if rows > 1 else "\r"
