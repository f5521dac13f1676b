"""Commands that run through a login shell: written so that every shell passes them on unchanged, with marks around their
output, so that what the shell itself prints before or after is never mistaken for the command's own.

A login shell may need seconds to start, so it starts once: it becomes a plain sh that runs one command after the other.
What a background job of the shell prints while a command runs cannot be separated: both write into one stream.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from gpucourse.outside.names import printable

MOST_NOISE = 1 << 20
"""Bytes that a login shell may print on one stream before the command begins."""

MOST_KEPT = 256 << 10
"""Bytes of input that the shell on the node reads whole before the command begins, so that it can run another one after it."""

CODE_DIGITS = 3

Stdin = bytes | Iterable[bytes]

_NOISE_KEPT = 2000
# A command is four words: the two halves of its marks, the form of its input, its escaped text. The marks are written as two
# halves: a shell that prints the commands which it runs does not print the marks. The forms of input: "-" is none, "+" is all
# that comes on the channel from now on (so no other command can follow), a number is as many bytes of escaped text.
_SCRIPT = (
    'own() { (cd "$HOME" && exec /bin/sh -c "$(printf %b "$1")"); }; '
    'carry_out() { printf %s%s-err "$1" "$2" >&2; printf %s%s-out "$1" "$2"; '
    'case "$3" in -) own "$4" </dev/null;; +) own "$4";; '
    '*) text=$(head -c "$3"); [ "${#text}" -eq "$3" ] || exit 75; printf %b "$text" | own "$4";; esac; code=$?; '
    'printf %s%s-end%03d "$1" "$2" "$code" >&2; printf %s%s-end%03d "$1" "$2" "$code"; '
    'if [ "$3" = + ]; then exit "$code"; fi; }; '
    'carry_out "$@"; while read -r a b form line; do carry_out "$a" "$b" "$form" "$line"; done; exit "$code"'
)
_ESCAPED = [bytes([byte]) if 32 <= byte < 127 and byte != 0x5C else b"\\0%03o" % byte for byte in range(256)]
_QUOTED = [chr(byte) if 32 <= byte < 127 and chr(byte) not in "'\\!" else f"\\0{byte:03o}" for byte in range(256)]


class Request:
    """One command with its input. Its marks are a new pair of random words, which no program prints by accident.

    `input` is the command's input as it is sent; `is_last` means that its shell can run no other command after it.
    """

    def __init__(self, command: str, stdin: Stdin = b"") -> None:
        self._halves = secrets.token_hex(8), secrets.token_hex(8)
        word = "".join(self._halves).encode()
        self.stdout, self.stderr, self.end = word + b"-out", word + b"-err", word + b"-end"
        self._command = _escape(command)
        self.input: Stdin = stdin
        self.is_last = not isinstance(stdin, bytes) or len(stdin) > MOST_KEPT
        if isinstance(stdin, bytes) and stdin and not self.is_last:
            self.input = b"".join(map(_ESCAPED.__getitem__, stdin))

    def first_line(self) -> str:
        """Return the command line that starts a shell with this command in $HOME, whatever the login shell is. It ends with the
        code of the last command; 128 + n if signal n ended it."""
        return f"exec /bin/sh -c '{_SCRIPT}' sh {self._words()} '{self._command}'"

    def next_line(self) -> bytes:
        """Return the line for a shell that has already run a command."""
        return f"{self._words()} {self._command}\n".encode("ascii")

    def _words(self) -> str:
        form = "+" if self.is_last else str(len(self.input)) if isinstance(self.input, bytes) and self.input else "-"
        return f"{' '.join(self._halves)} {form}"


class OwnOutput:
    """The bytes that a command itself writes on one stream: those between `begin` and `end`, returned as they arrive.

    `begun` and `ended` tell which marks have come; `noise_bytes` counts what came before `begin`. `code` is the exit code that
    follows the end mark; None if there is no valid one.
    """

    def __init__(self, begin: bytes, end: bytes) -> None:
        self._begin, self._end = begin, end
        self._held = b""
        self._noise_end = b""
        self.begun = self.ended = False
        self.noise_bytes = 0
        self.code: int | None = None

    def take(self, data: bytes) -> bytes:
        """Return the command's own bytes among these. What may be the beginning of a mark is held back until more arrives."""
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
        own, mark, after = held.partition(self._end)
        if mark:
            self._held = mark + after
            self._take_code(after)
            return own
        keep = _overlap(own, self._end)
        self._held = own[len(own) - keep :]
        return own[: len(own) - keep]

    def rest(self) -> bytes:
        """Return what was held back, when the stream has ended without another mark."""
        held, self._held = (self._held if self.begun and not self.ended else b""), b""
        return held

    def noise(self) -> str:
        """Return the end of what was printed before the command, in one printable line."""
        text = self._noise_end.decode("utf-8", "replace")
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())[-300:]

    def _take_code(self, after: bytes) -> None:
        digits = after[:CODE_DIGITS]
        if len(digits) == CODE_DIGITS:
            self.ended = True
            self.code = int(digits) if digits.isdigit() else None

    def _note_noise(self, data: bytes) -> None:
        self.noise_bytes += len(data)
        self._noise_end = (self._noise_end + data)[-_NOISE_KEPT:]


def last_words(stderr: bytes, most: int) -> str:
    """Return the printable end of what a command printed, at most `most` bytes of it; of a Python traceback only the last
    line."""
    lines = stderr[-most:].decode("utf-8", "replace").strip().splitlines()
    return printable("\n".join(lines[-1:] if b"Traceback (most recent call last)" in stderr else lines))


def _overlap(data: bytes, mark: bytes) -> int:
    """Return how many of the last bytes of `data` are the first of `mark`."""
    tail = data[1 - len(mark) :]
    at = tail.find(mark[:1])
    while at >= 0 and not mark.startswith(tail[at:]):
        at = tail.find(mark[:1], at + 1)
    return len(tail) - at if at >= 0 else 0


def _escape(command: str) -> str:
    r"""Return the text as `printf %b` reads it, using only characters that single quotes protect in sh, fish and csh alike.

    In csh they protect neither a line's end nor `!`; in fish they do not protect a backslash before a backslash or a quote.
    """
    return "".join(map(_QUOTED.__getitem__, command.encode("utf-8", "surrogateescape")))
