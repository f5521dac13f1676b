from __future__ import annotations

import pytest

from gpucourse.errors import GpucourseError, UnknownName, suggest


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("--Batch-sise", " Did you mean --batch-size?"),
        ("node3", " Did you mean node1 or node2?"),
        ("wombat", ""),
    ],
)
def test_suggest_names_what_is_similar(word: str, words: str) -> None:
    assert suggest(word, ["--batch-size", "node1", "node2"]) == words


def test_unknown_name_lists_a_dozen_of_the_known_ones() -> None:
    error = UnknownName("node", "x", [f"node{number}" for number in range(20)])
    assert error.what == "there is no node 'x'"
    assert error.hint.endswith("node11, ...")
    assert UnknownName("node", "x", []).hint == "known: none"


def test_with_subject_names_the_subject_once() -> None:
    assert GpucourseError("no answer").with_subject("node1") == "node1: no answer"
    assert GpucourseError("node1 is gone").with_subject("node1") == "node1 is gone"
