"""Make text from outside safe to show: no control character reaches the terminal. Also format counts, points, ages and
prices."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

# Every alternative begins with a character, not with a class or a group: `re` can then search for it eight times as fast.
# A whole escape sequence means nothing to a reader: CSI (colours, cursor), OSC/DCS/APC/PM/SOS with their text, two-byte ones.
# A sequence also ends where another begins: otherwise, each of many unfinished ones would be read to the end of the line.
_TEXT = r"[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"
    rf"|\x1b[\]PX^_]{_TEXT}|\x90{_TEXT}|\x98{_TEXT}|\x9d{_TEXT}|\x9e{_TEXT}|\x9f{_TEXT}"
    r"|\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]"
)
# The rest of C0 and C1, DEL, lone surrogates, line separators, and the characters that change the writing direction.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]"
_UNSAFE = re.compile(_CONTROL)
_SPACE = re.compile(r"\s+")
# A command of this program is kept together like one word: its options with their values, and other words with a digit, a
# capital letter or a sign in them. A comma, a semicolon, a colon or a bracket ends it. `18 %` and short code between backticks
# are kept together, too.
_ARGUMENT = r"""(?<![,;:)]) (?:--?[a-z][\w-]*(?:[ =](?:'[^'\n]*'|[^\s'-][^\s']*))?|'[^'\n]*'|[^\s']*[\d./=A-Z~][^\s']*)"""
_WORD = re.compile(
    rf"\s*(?:[(`]?gpucourse(?: [a-z][a-z-]*)?(?:{_ARGUMENT})*\S*|\S*\d %(?!\w)\S*|[(]?`[^`\n]{{1,30}}`[^\s`]*|\S+)"
)
_SHELL_WORD = re.compile(r"""\s*(?:--?[a-z][\w-]* +(?!-))?(?:'[^']*'|"[^"]*"|\S)+""")  # an option with its value is one word
_OPTION = re.compile(r"(\s*--?[a-z][\w-]*)(?= )")


def clean(text: str) -> str:
    """Return the text without escape sequences, and with other control characters spelled out (`\\x07`). Tabs and newlines stay
    unchanged."""
    if text.isprintable():
        return text
    return _UNSAFE.sub(_spell_out, _ESCAPES.sub("", text.replace("\r\n", "\n")))


def clean_line(text: str) -> str:
    """Clean a text as `clean` does, and put it on one line by turning every run of white space into one space."""
    return _SPACE.sub(" ", clean(text)).strip()


def has_code_marks(text: str) -> bool:
    """Return whether the text has code between backticks, as `report.html.mark_code` reads it. A backtick without a partner is
    not a mark.
    """
    return "`" in text and text.count("`") % 2 == 0


def strip_code_marks(text: str) -> str:
    """Return the text without the backticks around code."""
    return text.replace("`", "") if has_code_marks(text) else text


def pad(text: str, width: int) -> str:
    """Return the text, filled with spaces to `width` columns; longer text stays whole."""
    return text + " " * (width - cell_len(text))


def wrap(text: str, width: int | None, *, first: str = "", indent: str | None = None) -> list[str]:
    """Break text into lines of at most `width` columns, or only at its line breaks if `width` is None. The first line is
    indented with `first`, the others with `indent`.

    A paragraph keeps its own indent. A word that is longer than the line is not broken, so that paths can be copied. A command
    of this program that is longer than the line is broken with backslashes, as for a shell.
    """
    indent = " " * cell_len(first) if indent is None else indent
    lines: list[str] = []
    for paragraph in (text if width is None else text.expandtabs()).split("\n"):
        lead = indent if lines else first
        if width is None or cell_len(lead + paragraph) <= width:
            lines.append((lead + paragraph).rstrip())
        else:
            lines.extend(_fill(_WORD.findall(paragraph.rstrip()), max(width, cell_len(lead) + 16), lead, indent))
    return lines


def format_count(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: `1 file`, `2 files`; `nouns` is the plural if it is not made with an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def shorten_path(path: Path) -> str:
    """Return a path as a shell accepts it, with `~` in place of the home folder."""
    home = os.environ.get("HOME", "").rstrip("/")
    return f"~{str(path)[len(home) :]}" if home and str(path).startswith(f"{home}/") else str(path)


def age(seconds: float) -> str:
    """Format an age roughly, as a person would say it."""
    if seconds < 120:
        return f"{max(0.0, seconds):.0f} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 48 * 60 else f"{minutes // 1440} days"


def usd(amount: Decimal) -> str:
    """Format USD for a person: `$3.07`. An amount below a cent is `less than $0.01`, so that only zero is shown as zero."""
    from decimal import ROUND_HALF_UP, Decimal  # takes 3 ms, and most commands do not need it

    if 0 < amount < Decimal("0.01"):
        return "less than $0.01"
    return f"${amount.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"


def hourly(amount: Decimal | None) -> str:
    """Format USD per hour, `$1.53 an hour`, or `not known` for None."""
    return "not known" if amount is None else f"{usd(amount)} an hour"


def wrap_command(command: str, width: int) -> list[str]:
    """Break a shell command into lines of at most `width` columns. A backslash ends each line except the last, so that the
    lines can be copied and pasted as they are."""
    if cell_len(command) <= width:
        return [command]
    rows, row = [], ""
    for word in _list_pieces(command, width - len("   \\")):
        if row.strip() and cell_len(row + word) > width - len(" \\"):
            rows.append(f"{row} \\")
            row = f"  {word.lstrip()}"
        else:
            row += word
    return [*rows, row]


def _list_pieces(command: str, width: int) -> Iterator[str]:
    """Yield the words of a shell command, an option together with its value if both fit in `width` columns."""
    for word in _SHELL_WORD.findall(command):
        yield from [word] if cell_len(word.strip()) <= width else filter(None, _OPTION.split(word, maxsplit=1))


def _fill(words: Iterable[str], width: int, lead: str, indent: str) -> Iterator[str]:
    """Yield lines with as many words as fit. Each word includes the space before it."""
    line, is_empty = lead, True
    for word in words:
        text = word
        if not is_empty and cell_len(line + word) > width:
            yield line
            line, is_empty, text = indent, True, word.lstrip()
        if is_empty and " " in text.strip() and cell_len(line + text) > width:
            *rows, text = wrap_command(text, width - cell_len(indent))
            for row in rows:
                yield line + row
                line = indent
        line += text
        is_empty = False
    yield line


def _spell_out(match: re.Match[str]) -> str:
    """Return the escaped code of a character that must not be shown."""
    code = ord(match[0])
    number = code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code  # a byte of a file name that is not UTF-8
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
