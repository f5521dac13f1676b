"""Run commands through a login shell. Every shell passes them on unchanged, and marks around their output separate it from the
shell's own output.

A background job of the shell may print while a command runs. Its output cannot be separated from the command's, because both
write to the same stream.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from gpucourse.outside.names import printable

MAX_NOISE = 1 << 20
"""The maximum number of bytes that a login shell may print on one stream before the command begins."""

CODE_DIGITS = 3

NO_INPUT = "exec </dev/null; "
"""The beginning of a command without input, so that it does not wait for the channel to report the end of the input."""

Stdin = bytes | Iterable[bytes]

_NOISE_KEPT = 2000
# The marks are passed as two halves, so that a shell that prints the commands it runs does not print the marks.
_SCRIPT = (
    'printf %s%s-err "$1" "$2" >&2; printf %s%s-out "$1" "$2"; '
    '(cd "$HOME" && exec /bin/sh -c "$(printf %b "$3")"); code=$?; '
    'printf %s%s-end%03d "$1" "$2" "$code" >&2; printf %s%s-end%03d "$1" "$2" "$code"; exit "$code"'
)
_QUOTED = [chr(byte) if 32 <= byte < 127 and chr(byte) not in "'\\!" else f"\\0{byte:03o}" for byte in range(256)]


class Request:
    """A command with its input, as a `line` for any login shell. Its marks are random words, which no program prints by
    accident."""

    def __init__(self, command: str, stdin: Stdin = b"") -> None:
        self.stdin = stdin
        halves = secrets.token_hex(8), secrets.token_hex(8)
        word = "".join(halves).encode()
        self.stdout, self.stderr, self.end = word + b"-out", word + b"-err", word + b"-end"
        self.line = f"exec /bin/sh -c '{_SCRIPT}' sh {' '.join(halves)} '{_escape(command if stdin else NO_INPUT + command)}'"


class OwnOutput:
    """The bytes that a command itself writes to one stream, between the marks `begin` and `end`.

    `begun`, `ended`: whether each mark has arrived.
    `noise_bytes`: the number of bytes before `begin`.
    `code`: the exit code after the end mark, or None if there is no valid one.
    """

    def __init__(self, begin: bytes, end: bytes) -> None:
        self._begin, self._end = begin, end
        self._held = self._noise_end = b""
        self.begun = self.ended = False
        self.noise_bytes = 0
        self.code: int | None = None

    def take(self, data: bytes) -> bytes:
        """Return the command's own bytes in `data`. Bytes that may be the beginning of a mark are returned later."""
        if self.ended:
            return b""
        self._held += data
        if not self.begun:
            _, mark, following = self._held.partition(self._begin)
            if not mark:
                self.noise_bytes += len(data)
                self._noise_end = (self._noise_end + data)[-_NOISE_KEPT:]
                self._held = self._held[-len(self._begin) :]
                return b""
            self.begun, self._held = True, following
        output, mark, following = self._held.partition(self._end)
        if mark:
            self._take_code(following[:CODE_DIGITS])
        partial_size = 0 if mark else max(size for size in range(len(self._end)) if output.endswith(self._end[:size]))
        output = output[: len(output) - partial_size]
        self._held = self._held[len(output) :]
        return output

    def rest(self) -> bytes:
        """Return the bytes that were held back. Call this when the stream has ended without another mark."""
        remainder, self._held = (self._held if self.begun and not self.ended else b""), b""
        return remainder

    def noise(self) -> str:
        """Return the end of the output before the command began, as one printable line."""
        text = self._noise_end.decode("utf-8", "replace")
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())[-300:]

    def _take_code(self, digits: bytes) -> None:
        if len(digits) == CODE_DIGITS:
            self.ended = True
            self.code = int(digits) if digits.isdigit() else None


def last_words(stderr: bytes, limit: int) -> str:
    """Return at most the last `limit` bytes of a command's output, in printable form. For a Python traceback, return only the
    last line."""
    lines = stderr[-limit:].decode("utf-8", "replace").strip().splitlines()
    return printable("\n".join(lines[-1:] if b"Traceback (most recent call last)" in stderr else lines))


def _escape(command: str) -> str:
    r"""Return the text in the notation of `printf %b`, with only those characters that are safe between single quotes in sh,
    fish and csh.

    In csh, single quotes protect neither a line break nor `!`. In fish, they do not protect a backslash before a backslash or a
    quote.
    """
    return "".join(map(_QUOTED.__getitem__, command.encode("utf-8", "surrogateescape")))
