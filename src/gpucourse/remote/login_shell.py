"""A command on its way through somebody's login shell: written so that every shell hands it on unchanged, with marks around its
output, so that what the shell itself prints before or after is never taken for the command's own.

What a background job of the shell prints while the command runs cannot be told apart: both write into one stream.
"""

from __future__ import annotations

import secrets

MOST_NOISE = 1 << 20
"""Bytes that a login shell may print on one stream before the command begins."""

_NOISE_KEPT = 2000
# The marks are written as two halves: a shell that prints the commands which it runs does not print the marks.
_SCRIPT = (
    'printf %s%s-err "$2" "$3" >&2; printf %s%s-out "$2" "$3"; '
    'cd "$HOME" && /bin/sh -c "$(printf %b "$1")"; code=$?; '
    'printf %s%s-end "$2" "$3" >&2; printf %s%s-end "$2" "$3"; exit $code'
)


class Marks:
    """The marks of one command: a new pair of random words, which nobody can print by accident."""

    def __init__(self) -> None:
        self._halves = secrets.token_hex(8), secrets.token_hex(8)
        word = "".join(self._halves).encode()
        self.stdout, self.stderr, self.end = word + b"-out", word + b"-err", word + b"-end"

    def line(self, command: str) -> str:
        """The command line that runs `command` with sh in $HOME and writes the marks around its output, whatever the login
        shell is. It ends with the command's code; with 128 + n where a signal n ended the command."""
        return f"exec /bin/sh -c '{_SCRIPT}' sh '{_escape(command)}' {' '.join(self._halves)}"


class OwnOutput:
    """What a command itself writes on one stream: the bytes between `begin` and `end`, given out as they arrive.

    `begun` and `ended` tell which marks have come; `noise_bytes` counts what came before `begin`.
    """

    def __init__(self, begin: bytes, end: bytes) -> None:
        self._begin, self._end = begin, end
        self._held = b""
        self._noise_end = b""
        self.begun = self.ended = False
        self.noise_bytes = 0

    def take(self, data: bytes) -> bytes:
        """The command's own bytes among these. What may be the first part of a mark is held back until more comes."""
        if self.ended:
            return b""
        held = self._held + data
        if not self.begun:
            before, mark, held = held.partition(self._begin)
            self._note_noise(data if not mark else b"")
            if not mark:
                self._held = before[-(len(self._begin) - 1) :]
                return b""
            self.begun = True
        own, mark, _ = held.partition(self._end)
        if mark:
            self.ended, self._held = True, b""
            return own
        keep = _overlap(own, self._end)
        self._held = own[len(own) - keep :]
        return own[: len(own) - keep]

    def rest(self) -> bytes:
        """What was held back, where the stream has ended without another mark."""
        held, self._held = (self._held if self.begun else b""), b""
        return held

    def noise(self) -> str:
        """The end of what came before the command, in one printable line."""
        text = self._noise_end.decode("utf-8", "replace")
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())[-300:]

    def _note_noise(self, data: bytes) -> None:
        self.noise_bytes += len(data)
        self._noise_end = (self._noise_end + data)[-_NOISE_KEPT:]


def _overlap(data: bytes, mark: bytes) -> int:
    """How many of the last bytes of `data` are the first of `mark`."""
    return next((size for size in range(min(len(mark) - 1, len(data)), 0, -1) if data.endswith(mark[:size])), 0)


def _escape(command: str) -> str:
    r"""The text as `printf %b` reads it, of characters that single quotes protect in sh, fish and csh alike.

    In csh they protect neither a line's end nor `!`; in fish they do not protect a backslash before a backslash or a quote.
    """
    data = command.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in "'\\!" else f"\\0{byte:03o}" for byte in data)
