"""A wrong answer costs points, a later answer counts less, and a sheet does not restore an attempt."""

from __future__ import annotations

import pytest

from tests.learning import Learning

SHEET = "deliverables/1.1/answers.yaml"


def read_answer(learning: Learning, name: str, *words: str) -> dict[str, object]:
    """Return the result of one answer in the output of `show`, which submits nothing."""
    answers = learning.types("show", "1.1", "--json").document["answers"]
    return dict(next(answer for answer in answers if answer["id"] == name))


def give(learning: Learning, *answers: str) -> str:
    """Submit the answers one after the other, and return the output about the last."""
    outputs = [learning.types("answer", "1.1", "--set", answer, code=None).out for answer in answers]
    return " ".join(outputs[-1].split())


@pytest.mark.parametrize(
    ("answers", "share", "final"),
    [
        (["where=b"], 1, False),
        (["where=a", "where=b"], 0, False),
        (["where=a"], -0.5, False),
        (["where=a", "where=c"], -1, True),
        (["where=a", "where=c", "where=b"], -1, True),
        (["where=a", "where=a", "where=b"], 0, False),
        (["speedup=1", "speedup=1.9"], 0.5, False),
        (["speedup=1", "speedup=2", "speedup=1.9"], 0, True),
    ],
)
def test_count_wrong_lowers_the_credit_of_each_further_attempt(
    learning: Learning, answers: list[str], share: float, final: bool
) -> None:
    learning.record()
    give(learning, *answers)
    answer = read_answer(learning, answers[0].partition("=")[0])
    assert (answer["share"], answer["final"]) == (share, final)


def test_is_submitted_is_false_for_answers_only_in_the_sheet(learning: Learning) -> None:
    learning.record()
    give(learning, "where=a")
    sheet = learning.workspace / SHEET
    sheet.write_text(sheet.read_text().replace('"a"', '"b"').replace("  busy:", "  busy: 80"))
    for name in ("where", "busy"):
        answer = read_answer(learning, name)
        assert (answer["verdict"], answer["explanation"]) == ("open", "")
        assert "not submitted yet" in str(answer["said"])
    assert learning.read_points()["understanding"] == 0
    assert "2 right" in learning.types("answer", "1.1").out
    assert read_answer(learning, "where")["share"] == 0, "the second attempt of three options"


def test_read_attempts_reads_those_in_a_bundle(learning: Learning) -> None:
    learning.record()
    give(learning, "where=a", "where=b", "speedup=1.9")
    bundle = str(learning.root / "work.zip")
    learning.types("grade", "--bundle", bundle)
    assert learning.read_points("--open", bundle)["understanding"] == 2.5
