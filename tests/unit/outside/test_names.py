"""Names from outside stay inside, and text from outside is safe to show."""

from __future__ import annotations

import pytest

from gpucourse.outside.names import OutsideError, check_known_name, printable, relative_name


@pytest.mark.parametrize("name", ["a", "a/b/c.txt", "with space", "-dash", "ünïcødé", "..a", "a..", "...", "a\\b", "~", "*"])
def test_a_name_below_a_folder_is_taken_as_it_is(name: str) -> None:
    assert relative_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "../x",
        "a/../b",
        "a/..",
        "a//b",
        "a/",
        "a/./b",
        "./a",
        "a\0b",
        "a\nb",
        "a\rb",
        "a\tb",
        "\x1b[31m",
        "a\x7f",
        "a\x9b",
        "a\u202eb",
        "a\u2028b",
        "a\ud800",
        "a" * 256,
        "ü" * 128,
        "a/" * 32 + "a",
        "a/" * 200 + "a",
        None,
        7,
        b"a",
        ["a"],
    ],
)
def test_any_other_name_is_refused(name: object) -> None:
    with pytest.raises(OutsideError) as caught:
        relative_name(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 300


def test_the_limits_of_a_name_can_be_chosen() -> None:
    assert relative_name("ab/c", max_length=4, max_parts=2) == "ab/c"
    with pytest.raises(OutsideError, match="limit is 3"):
        relative_name("ab/c", max_length=3)
    with pytest.raises(OutsideError, match="more than 1 folders"):
        relative_name("ab/c", max_parts=1)


def test_only_a_name_that_was_asked_for_is_known() -> None:
    assert check_known_name("node0", {"node0", "node1"}, "node") == "node0"
    for name in ("node2", "../node0", "", None, 0, ["node0"], {"node0": 1}, "x" * 10_000):
        with pytest.raises(OutsideError, match="there is no node"):
            check_known_name(name, {"node0", "node1"}, "node")


def test_text_is_spelled_out_on_one_line_and_cut() -> None:
    assert printable("plain ü 漢 \U0001f600") == "plain ü 漢 \U0001f600"
    assert printable("a\x1b[31m\n\t\u202e\ud800") == "a\\x1b[31m\\n\\t\\u202e\\ud800"
    assert printable("x" * 400) == "x" * 297 + "..."
    assert printable("\n" * 400, 10) == "\\n\\n\\n\\..."
    assert printable("x" * 300) == "x" * 300
    assert printable("xyz", 2) == ".."
    assert len(str(OutsideError("\x1b" * 10_000_000))) == 300
