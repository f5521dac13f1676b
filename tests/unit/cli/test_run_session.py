"""The transcript of a session: the text that was readable, without the sequences that moved the cursor."""

from __future__ import annotations

import pytest

from gpucourse.cli.run_session import make_readable


@pytest.mark.parametrize(
    ("screen", "text"),
    [
        (b"\x1b[?2004hme@node1:~$ hostname\r\n\x1b[?2004l\rnode1\r\n", "me@node1:~$ hostname\nnode1\n"),
        (b"echo hallo\b \b\b \b\b \b\b \bello\r\n", "echo hello\n"),
        (b"\x1b[31mred\x1b[0m\a\r\n", "red\n"),
        ("größe 80 %\r\n".encode(), "größe 80 %\n"),
        (b"\b\b\bx\n\by", "x\ny"),
        (b"$ squeu\x1b[1@e\b\x1b[K\x1b[2De -h\n", "$ sque -h\n"),
        (b"50 %\r100 %\n", "100 %\n"),
        (b"", ""),
    ],
)
def test_make_readable_keeps_what_a_terminal_showed(screen: bytes, text: str) -> None:
    assert make_readable(screen) == text
