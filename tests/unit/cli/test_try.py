"""The command `try`: its screen, its document and its exit code."""

from __future__ import annotations

import pytest

from tests.learning import Learning
from tests.unit.learning.test_try import SAME, STUB, own, put_parts, write


@pytest.fixture
def writer(learning: Learning) -> Learning:
    put_parts(learning)
    return learning


def test_try_of_a_part_as_delivered_is_open_and_shows_its_place(writer: Learning) -> None:
    result = writer.types("try", "1.2")
    assert "Twice: open" in result.out
    assert "Write the body of double." in result.out
    assert str(own(writer)) in result.out
    assert "Write it in my_double.py and save it." in result.out


def test_try_of_a_wrong_part_names_the_way_and_exits_5(writer: Learning) -> None:
    write(writer, SAME)
    result = writer.types("try", "1.2", code=5)
    assert "Twice: wrong (same)" in result.out
    assert "you gave 3 back as it was" in result.out
    assert "n = 3" in result.out
    (part, dry) = writer.types("try", "1.2", "--json", code=5).document["parts"]
    assert (part["id"], part["verdict"], part["way"], dry["verdict"]) == ("double", "failed", "same", "open")
    writer.types("reset", "1.2")
    assert own(writer).read_text() == STUB


def test_try_of_an_exercise_without_a_part_is_refused(writer: Learning) -> None:
    assert "has no part" in writer.types("try", "1.1", code=2).err


def test_try_of_invalid_syntax_shows_the_line_and_starts_no_judge(writer: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("gpucourse.judge.client.Judge.judge")
    write(writer, "def double(n)\n    return 2 * n\n")
    result = writer.types("try", "1.2", code=5)
    assert "my_double.py:1: expected ':'" in result.out
    assert "    def double(n)\n                 ^\n" in result.out
