"""Lines of a log: how each is shown, and how far a bar without a newline is."""

from __future__ import annotations

import pytest

from gpucourse.ui.loglines import short, visible, wrap_lines


@pytest.mark.parametrize(
    ("raw", "output"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\xff\xfe caf\xc3\xa9", "\ufffd\ufffd café"),
        (b"bell\x07", "bell\\x07"),
        (b"\x1b]0;owned\x07ok", "ok"),
        (b"a\tb", "a\tb"),
        (b"10%\r20%\r", "20%"),
        (b"\r", ""),
    ],
)
def test_visible_makes_a_line_harmless(raw: bytes, output: str) -> None:
    assert visible(raw) == output
    assert visible(raw + b"\nplain\r\nnext\r") == f"{output}\nplain\nnext"


def test_short_of_a_foreign_name_has_no_escape() -> None:
    assert [short(name) for name in ("node0", "node-12", "gpu-box", "\x1b[31mnode")] == ["n0", "n12", "gpu-box", "node"]


def test_wrap_lines_indents_below_the_prefix() -> None:
    block = "  1.250 s  [n0 r0] rank 0 joined two ranks after a while\n[r0-3] epoch 1, and its loss, which fell\nplain"
    assert wrap_lines(block, 40).split("\n") == [
        "  1.250 s  [n0 r0] rank 0 joined two",
        "                   ranks after a while",
        "[r0-3] epoch 1, and its loss, which fell",
        "plain",
    ]
    assert wrap_lines(block, None) == block
    assert wrap_lines(row := "[n0 r0] 1 rank  128  0.44  0.42  0.49  287,942", 40) == row, "a row of a table is not broken"
    assert wrap_lines("padded" + " " * 300_000, 40) == "padded", "in a time that grows with the length of the line"
