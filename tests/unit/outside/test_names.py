"""Names from outside stay inside, and text from outside is safe to show."""

from __future__ import annotations

import pytest

from gpucourse.outside.names import OutsideError, check_known_name, printable, relative_name


@pytest.mark.parametrize("name", ["a", "a/b/c.txt", "with space", "-dash", "ünïcødé", "..a", "a..", "...", "a\\b", "~", "*"])
def test_relative_name_returns_a_name_below_a_folder(name: str) -> None:
    assert relative_name(name) == name


BAD_PATHS = ["", ".", "..", "/", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a/" * 32 + "a", "a/" * 200 + "a"]
BAD_CHARACTERS = ["a\0b", "a\nb", "\x1b[31m", "a\x9b", "a\u202eb", "a\u2028b", "a\ud800", "a" * 256, "ü" * 128]


@pytest.mark.parametrize("name", [*BAD_PATHS, *BAD_CHARACTERS, None, b"a"])
def test_relative_name_refuses_any_other_name(name: object) -> None:
    with pytest.raises(OutsideError) as caught:
        relative_name(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 300


def test_relative_name_keeps_to_the_limits_of_the_caller() -> None:
    assert relative_name("ab/c", max_length=4, max_parts=2) == "ab/c"
    with pytest.raises(OutsideError, match="limit is 3"):
        relative_name("ab/c", max_length=3)
    with pytest.raises(OutsideError, match="more than 1 folders"):
        relative_name("ab/c", max_parts=1)


def test_check_known_name_refuses_other_names() -> None:
    assert check_known_name("node0", {"node0", "node1"}, "node") == "node0"
    for name in ("node2", "../node0", "", None, 0, ["node0"], {"node0": 1}, "x" * 10_000):
        with pytest.raises(OutsideError, match="there is no node"):
            check_known_name(name, {"node0", "node1"}, "node")


def test_printable_escapes_text_and_shortens_it() -> None:
    assert printable("plain ü 漢 \U0001f600") == "plain ü 漢 \U0001f600"
    assert printable("a\x1b[31m\n\t\u202e\ud800") == "a\\x1b[31m\\n\\t\\u202e\\ud800"
    assert printable("x" * 400) == "x" * 297 + "..."
    assert printable("\n" * 400, 10) == "\\n\\n\\n\\..."
    assert printable("x" * 300) == "x" * 300
    assert printable("xyz", 2) == ".."
    assert len(str(OutsideError("\x1b" * 10_000_000))) == 300
