from __future__ import annotations

import pytest

from gpucourse.learning.pages.side_by_side import ComparedRow, ComparedValue, Spread


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
