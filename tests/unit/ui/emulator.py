"""A terminal that understands exactly what the live screen may send, and refuses everything else."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from tests.waiting import STUCK_S

_TOKEN = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


class Emulator:
    """Rows of text with a cursor, `columns` wide; scrolled rows stay in `rows`."""

    def __init__(self, columns: int = 80) -> None:
        self.columns = columns
        self.rows: list[str] = [""]
        self.row = self.column = 0
        self.cursor_visible = True

    def feed(self, text: str) -> None:
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            assert match, f"the terminal was sent {text[position : position + 12]!r}"
            position = match.end()
            self._take(match)

    @property
    def lines(self) -> list[str]:
        """Return the rows on the screen and above it, without empty rows at the end."""
        rows = [row.rstrip() for row in self.rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def _take(self, match: re.Match[str]) -> None:
        token, letter = match.group(), match.group(3)
        if token == "\r":
            self.column = 0
        elif token == "\n":
            self._line_feed()
            self.column = 0
        elif letter is None:
            assert token.isprintable(), f"a control character in {token!r}"
            for character in token:
                self._put(character)
        elif match.group(1):
            assert match.group(2) in {"25", "2026"}, token
            if match.group(2) == "25":
                self.cursor_visible = letter == "h"
        elif letter == "A":
            self.row -= int(match.group(2))
            assert self.row >= 0
        elif letter in {"J", "K"}:
            assert match.group(2) == "" or token == "\x1b[2K"
            self.rows[self.row] = "" if token == "\x1b[2K" else self.rows[self.row][: self.column]
            if letter == "J":
                del self.rows[self.row + 1 :]
        else:
            assert letter == "m", token

    def _put(self, character: str) -> None:
        if self.column == self.columns:
            self._line_feed()
            self.column = 0
        row = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = row[: self.column] + character + row[self.column + 1 :]
        self.column += 1

    def _line_feed(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")


class Terminal:
    """The person's side of a pseudo-terminal: everything that was written to `stream`."""

    def __init__(self, stream: TextIO, pieces: list[bytes]) -> None:
        self.stream = stream
        self._pieces = pieces

    @property
    def received(self) -> str:
        """Return everything that was written, as it arrived."""
        return b"".join(self._pieces).decode(errors="replace")


@contextmanager
def terminal(columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    """Yield a pseudo-terminal of that size."""
    import fcntl
    import struct
    import termios
    import tty

    master, slave = os.openpty()
    tty.setraw(slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    pieces: list[bytes] = []

    def read() -> None:
        while True:
            try:
                piece = os.read(master, 1 << 16)
            except OSError:  # the other side has closed
                return
            if not piece:
                return
            pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield Terminal(stream, pieces)
    reader.join(STUCK_S)
    assert not reader.is_alive()
    os.close(master)
