from __future__ import annotations

import shlex
from decimal import Decimal

import pytest

from gpucourse.ui.text import age, clean, clean_line, format_count, hourly, usd, wrap, wrap_command


@pytest.mark.parametrize(
    ("dirty", "output"),
    [
        ("plain ✓", "plain ✓"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07x", "x"),
        ("\x1b]52;c;ZXZpbA==\x1b\\y", "y"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[?1049h\x1bc\x1b(Bz", "z"),
        ("\x9b31mred", "red"),
        ("bell\x07 nul\x00", "bell\\x07 nul\\x00"),
        ("unfinished \x1b]0;title", "unfinished \\x1b]0;title"),
        ("alone \x1b", "alone \\x1b"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("line\u2028two", "line\\u2028two"),
        ("x\udcffy", "x\\xffy"),
    ],
)
def test_clean_makes_escapes_harmless(dirty: str, output: str) -> None:
    assert clean(dirty) == output


def test_clean_leaves_nothing_that_a_terminal_obeys() -> None:
    everything = "".join(map(chr, range(0x300))) + "".join(f"\x1b{chr(code)}" for code in range(0x100)) + "\u2066\u200f\ufeff"
    leftover = [character for character in clean(everything) if not character.isprintable() and character not in "\t\n\xa0\xad"]
    assert leftover == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("begin", ["\x90", "\x1b]", "\x1b[1"])
def test_clean_of_sequences_that_never_end_is_quick(begin: str) -> None:
    """If each unfinished sequence were read to the end of the line, this would take half an hour."""
    assert len(clean(begin * 500_000)) >= 500_000


def test_clean_line() -> None:
    assert clean_line("  two\n lines\tand more \r\n") == "two lines and more"


def test_wrap_never_breaks_a_path() -> None:
    path = "/a/very/long/path/that/does/not/fit/into/the/line/at/all.json"
    assert wrap(f"see {path} there", 30, first="* ") == ["* see", f"  {path}", "  there"]
    assert wrap("it falls by 18 %, then", 14) == ["it falls by", "18 %, then"]
    assert wrap("a b\n\nc", None, first="- ") == ["- a b", "", "  c"]


def test_wrap_keeps_a_command_whole_or_continues_it_as_a_shell_does() -> None:
    text = "then answer: gpucourse run 3.2 --set batch_size=16,32, and gpucourse check --all says which"
    assert wrap(text, 44) == [
        "then answer:",
        "gpucourse run 3.2 --set batch_size=16,32,",
        "and gpucourse check --all says which",
    ]
    assert wrap("A kernel begins with `if (i < n)`.", 30) == ["A kernel begins with", "`if (i < n)`."]
    assert wrap("gpucourse run --script 'my file.py' --nodes 2", 30, first="Next: ") == [
        "Next: gpucourse run --script \\",
        "        'my file.py' \\",
        "        --nodes 2",
    ]


def test_age_and_format_count() -> None:
    assert [format_count(count, "file") for count in (0, 1, 1234)] == ["0 files", "1 file", "1,234 files"]
    assert format_count(2, "process", "processes") == "2 processes"
    ages = [age(seconds) for seconds in (-3, 59, 3600, 4 * 3600 + 61, 3 * 86400)]
    assert ages == ["0 s", "59 s", "60 min", "4 h 01 min", "3 days"]


def test_hourly_and_usd() -> None:
    assert [usd(Decimal(text)) for text in ("0", "0.004", "0.006", "1.545", "1234.5")] == [
        "$0.00", "less than $0.01", "less than $0.01", "$1.55", "$1,234.50",
    ]  # fmt: skip
    assert hourly(None) == "not known"


def test_wrap_command_breaks_before_a_value_that_does_not_fit_beside_its_option() -> None:
    command = "gpucourse show 0.1 --run 20261130-211343-crane --verbose --author 'a b c d e f g h i j k l m n'"
    for width in (29, 40, 80):
        rows = wrap_command(command, width)
        assert all(len(row) <= width for row in rows if "'" not in row)
        assert shlex.split("\n".join(rows).replace("\\\n", "")) == shlex.split(command)
