"""The sheet of answers, as a person or the program writes it."""

from __future__ import annotations

import pytest

from tests.learning import Learning

SHEET = "deliverables/1.1/answers.yaml"


@pytest.mark.parametrize(
    "text", ["\x9b2J a\x85b\u2028c \ufeffa\uffff 👩‍🚀 中", "x" * 90 + "\x7f", "a\n---\n...\n" + "x" * 90, "# a: 'b\"\\u0041"]
)
def test_write_sheet_with_odd_characters_is_read_back_as_typed(learning: Learning, text: str) -> None:
    learning.record()
    learning.types("answer", "1.1", "--set", "where=b")
    learning.types("answer", "1.1", "--set", f"why={text}")
    answers = {answer["id"]: answer["answer"] for answer in learning.types("answer", "1.1", "--json").document["answers"]}
    assert answers["why"].split() == text.split()
    assert answers["where"] == "b. in the sea"


def test_read_sheet_reads_one_that_was_written_by_hand(learning: Learning) -> None:
    learning.record()
    learning.types("answer", "1.1", "--template")
    path = learning.workspace / SHEET
    path.write_text(path.read_text().replace("  busy:", "  busy: 80").replace("  why:", "  why: |\n    It falls.\n    Down.\n"))
    result = learning.types("answer", "1.1")
    assert "you said 80 %; your run shows 78 to 96 %" in result.out
    elsewhere = learning.root / "mine.yaml"
    elsewhere.write_text('exercise: "1.1"\nanswers: {where: b}\n')
    assert "2 right" in learning.types("answer", "1.1", "--file", str(elsewhere)).out
    assert "Down." in path.read_text()
    assert "It falls. Down." in learning.types("answer", "1.1").out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('exercise: "1.2"\nanswers: {}\n', "exercise: these are answers to 1.2, not to 1.1, line 1"),
        ("exercise: 1.1\nanswers: {}\n", 'exercise: 1.1 is not text: put it in quotes, "1.1", line 1'),
        ('exercise: "1.1"\nanswers: {wher: b}\n', "answers.wher: 1.1 has no such question (did you mean where?), line 2"),
        ('exercise: "1.1"\nanswers: {where: [b]}\n', "answers.where:"),
        ('exercise: "1.1"\nanswers: {speedup: fast}\n', "the answer to 1.1 speedup: 'fast' is not a number"),
        ('exercise: "1.1"\nrun: 20200101-000000-otter\nanswers: {}\n', "there is no run '20200101-000000-otter'"),
    ],
)
def test_read_sheet_with_a_mistake_names_its_place_and_changes_nothing(learning: Learning, text: str, message: str) -> None:
    learning.record()
    learning.types("answer", "1.1", "--set", "where=b")
    old_bytes = (learning.workspace / SHEET).read_bytes()
    sheet = learning.root / "mine.yaml"
    sheet.write_text(text)
    result = learning.types("answer", "1.1", "--file", str(sheet), code=2)
    assert message in result.err
    assert "→" in result.err
    assert (learning.workspace / SHEET).read_bytes() == old_bytes


def test_load_sheet_refuses_a_damaged_one(learning: Learning) -> None:
    learning.record()
    learning.types("answer", "1.1", "--set", "where=b")
    (learning.workspace / SHEET).write_text("exercise: [")
    assert "answers.yaml: is not YAML" in learning.types("answer", "1.1", code=2).err
    learning.types("answer", "1.1", "--set", "where=b", code=2)
    assert "answers.yaml.damaged" in learning.types("answer", "1.1", "--template").err
    assert (learning.workspace / f"{SHEET}.damaged").read_text() == "exercise: ["
    learning.types("answer", "1.1", "--set", "where=b")
