"""Check names and text from outside: a path must stay inside its folder, a name must be a known name, and text must be safe to
display."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

_UNSHOWN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories of invisible characters: controls, direction marks, surrogates, line separators."""

_MAX_PART = 255  # bytes: the limit of every usual file system
_ELLIPSIS = "..."


class OutsideError(ValueError):
    """Unusable data from outside. The message is one plain, printable sentence of at most 300 characters."""

    def __init__(self, subject: str) -> None:
        super().__init__(printable(subject))


def relative_name(text: object, *, max_length: int = 400, max_parts: int = 32) -> str:
    """Return the name of a file below a folder, unchanged. Folders in the name are separated by `/`.

    Raises OutsideError if it is not text, is not relative, or has more than `max_length` characters or `max_parts` parts. Also
    raises it for an empty or too long part, `.`, `..`, control characters, and characters that UTF-8 cannot encode.
    """
    if not isinstance(text, str) or not text:
        raise OutsideError("a file name is empty or is not text")
    if len(text) > max_length:
        raise OutsideError(f"the file name {printable(text, 40)} has {len(text)} characters; the limit is {max_length}")
    if not is_shown(text):
        raise OutsideError(f"the file name {printable(text, 80)} has control characters")
    parts = text.split("/")
    if len(parts) > max_parts:
        raise OutsideError(f"the file name {printable(text, 80)} has more than {max_parts} folders")
    if text.startswith("/") or ".." in parts:
        raise OutsideError(f"the file name {printable(text, 80)} leads out of its folder")
    if any(part in {"", "."} for part in parts):
        raise OutsideError(f"the file name {printable(text, 80)} does not name a file")
    if any(len(part.encode()) > _MAX_PART for part in parts):
        raise OutsideError(f"the file name {printable(text, 80)} has a part longer than {_MAX_PART} bytes")
    return text


def check_part(text: str) -> None:
    """Check that the text can be one part of a path. Raises OutsideError if it is empty or too long, or contains a slash, a
    backslash or hidden characters."""
    if "/" in relative_name(text, max_length=_MAX_PART) or "\\" in text:
        raise OutsideError(f"{printable(text, 80)} is not a single name")


def check_known_name(text: object, names: Collection[str], subject: str) -> str:
    """Return the name if it is one of `names`. Raises OutsideError if it is not.

    `subject`: what the name stands for, such as `node` or `run`.
    """
    if not isinstance(text, str) or text not in names:
        raise OutsideError(f"there is no {subject} {printable(text, 80) if isinstance(text, str) else type(text).__name__}")
    return text


def is_shown(text: str) -> bool:
    """Return whether the text can be displayed as it is: without control characters, direction marks or lone surrogates."""
    return text.isprintable() or not any(unicodedata.category(character) in _UNSHOWN for character in text)


def printable(text: str, limit: int = 300) -> str:
    """Return the text on one line: unprintable characters are escaped (`\\x1b`), and anything beyond `limit` characters is cut
    off."""
    text = text[: limit + 1]  # bounds the work as well
    if not is_shown(text):
        text = "".join(_spell_out(character) for character in text)
    return text if len(text) <= limit else text[: max(limit - len(_ELLIPSIS), 0)] + _ELLIPSIS[:limit]


def _spell_out(character: str) -> str:
    if unicodedata.category(character) not in _UNSHOWN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
