from __future__ import annotations

import pytest

from gpucourse.learning.pages.run_content import read_run
from gpucourse.learning.pages.side_by_side import (
    ComparedRow,
    ComparedValue,
    Spread,
    list_values,
    put_side_by_side,
)
from tests.learning import METRICS, Learning


@pytest.mark.parametrize(
    ("after", "mark"),
    [
        (ComparedValue(text="12", number=12, measured=True, times=(Spread(12, 9.6, 14.4),)), "≈ +20 %"),
        (ComparedValue(text="20", number=20, measured=True, times=(Spread(20, 16, 24),)), "+100 %"),
        (ComparedValue(text="12", number=12, measured=True), "? +20 %"),
        (ComparedValue(text="12", number=12), "+20 %"),
        (ComparedValue(text="many"), ""),
    ],
)
def test_difference_is_marked_when_the_spreads_overlap_or_are_unknown(after: ComparedValue, mark: str) -> None:
    before = ComparedValue(text="10", number=10, measured=True, times=(Spread(10, 8, 12),))
    row = ComparedRow(title="ms", values=(before, after))
    assert (row.differs, row.list_differences()) == (True, ["", mark])


def test_put_side_by_side_has_every_value_that_a_run_has(learning: Learning) -> None:
    runs = [
        learning.record(metrics=METRICS | {"springs": [{"litres": 2.0}]}, parameters={"depth": 10}),
        learning.record(metrics=METRICS | {"springs": [{"litres": 3.0}, {"litres": 9.5}]}, parameters={"depth": 15}),
    ]
    groups = put_side_by_side([list_values(read_run(learning.context, run)) for run in runs])
    rows = {(group, row.title): row for group in groups for row in groups[group]}
    assert [value and value.text for value in rows["Springs", "row 2 · litres"].values] == [None, "9.5"]
    assert rows["Springs", "row 1 · litres"].list_differences() == ["", "? +50 %"]
    assert rows["started", "depth"].list_differences() == ["", "+50 %"]
    assert not rows["checks", "It is wet"].differs
