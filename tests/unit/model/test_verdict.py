from __future__ import annotations

import pytest

from gpucourse.model.manifest import LearnerPart
from gpucourse.model.verdict import PartResult, PartVerdict, choose_needed, count_verdicts
from tests.unit.ui.examples import RESULTS

PARTS = (
    LearnerPart(id="trace", title="t", file="a.py", write="w"),
    LearnerPart(id="preload", title="t", file="b.c", write="w", instead_of="trace"),
)


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("open", "open", "trace"),
        ("open", "failed", "preload"),
        ("failed", "passed", "preload"),
        ("passed", "failed", "trace"),
        ("passed", "passed", "trace"),
    ],
)
def test_choose_needed_takes_the_better_of_two_parts_that_replace_each_other(
    first: PartVerdict, second: PartVerdict, name: str
) -> None:
    verdicts = zip(PARTS, (first, second), strict=True)
    results = [PartResult(id=part.id, title="t", file=part.file, verdict=word) for part, word in verdicts]
    assert [result.id for result in choose_needed(PARTS, results)] == [name]


def test_count_verdicts_has_a_number_for_each_verdict() -> None:
    assert count_verdicts(RESULTS) == "1 passed, 1 failed, 1 error, 1 not measured"
    assert count_verdicts(()) == "no checks"
