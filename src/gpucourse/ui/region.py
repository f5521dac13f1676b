"""The region at the bottom of the terminal, whose lines change in place. Finished lines scroll away above it. rich draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, cast

from rich.console import Group
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from gpucourse.ui.glyphs import ASCII_ELLIPSIS, UNICODE
from gpucourse.ui.out import Out
from gpucourse.ui.styles import make_console

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"  # synchronised output; terminals without it ignore it


class Region:
    """Paints frames on one terminal. It is not thread-safe: its owner must not paint from two threads at the same time."""

    def __init__(self, out: Out, *, colour: bool) -> None:
        self._out = out
        self._frames = _Frames(out)
        self._console = make_console(cast("IO[str]", self._frames), width=None, colour=colour)
        self._live = Live(
            self, console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._rows: list[Text] = []
        self._page = out.apart, out.written_at  # the state of the text that stays on the terminal

    @property
    def columns(self) -> int:
        """Return the maximum length of a line, which leaves the last column empty."""
        return self._out.size()[0] - len(ASCII_ELLIPSIS if self._out.ascii else UNICODE.ellipsis)

    def __rich__(self) -> Group:
        """Return the rows that rich draws now."""
        return Group(*self._rows)

    def paint(self, rows_above: Sequence[Text], rows: Sequence[Text]) -> None:
        """Let `rows_above` (finished lines) scroll away and show `rows` below them, in a single write, so that nothing
        flickers."""
        width, height = self._out.size()
        if not self._rows:
            self._page = self._out.apart, self._out.written_at
        self._frames.overwrite = not rows_above
        with self._console:
            self._erase_wrapped(width)
            self._console.size = width, height
            self._rows = list(rows[: max(1, height - 1)])
            for row in self._rows:
                row.truncate(self.columns, overflow="ellipsis")
            if self._rows:
                self._live.start()
            if rows_above:
                self._console.print(*rows_above, sep="\n", no_wrap=True, overflow="ignore", crop=False)
            elif self._rows:
                self._live.refresh()
            if not self._rows:
                self._live.stop()
        if rows_above:
            self._page = not rows_above[-1], self._out.written_at
        if not self._rows:  # nothing of the region is left, so the page is as it was
            self._out.apart, self._out.written_at = self._page

    def clear(self) -> None:
        """Remove the region and show the cursor again, before other text is written."""
        self._rows = []
        self._live.stop()

    def _erase_wrapped(self, width: int) -> None:
        """Erase the extra rows that the region's lines occupy after the terminal has become narrower. rich would erase only one
        row for each line."""
        extra_rows = sum(max(0, (row.cell_len - 1) // width) for row in self._rows)
        self._console.control(Control(*((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1)) * extra_rows))


class _Frames:
    """The stream that rich writes to; each write is one frame. rich erases all lines before it draws them. With `overwrite`,
    they are overwritten instead, so that a terminal that shows half a frame shows no gap."""

    def __init__(self, out: Out) -> None:
        self._out = out
        self.overwrite = True

    def write(self, text: str) -> None:
        """Write a frame that the terminal shows as a whole."""
        if text and self.overwrite:
            text = text.replace("\x1b[2K", "").replace("\n", "\x1b[K\n") + "\x1b[J"
        self._out.write(text and f"{_BEGIN}{text}{_END}")

    def flush(self) -> None:
        """Do nothing, because every frame is written immediately."""
