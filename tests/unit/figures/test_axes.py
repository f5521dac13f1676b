"""Axes: sizes, whole numbers and words below a picture."""

from __future__ import annotations

import pytest

from gpucourse.figures.axes import format_bar, short_number
from tests.unit.figures.test_plots import LINE, SYNC, lines, show


def test_size_axis_shows_powers_of_two() -> None:
    assert {"4 B", "1 KiB", "64 KiB"} <= set(show(LINE, SYNC))


def test_point_axis_shows_whole_numbers_and_large_ones_short() -> None:
    rows = [{"x": ranks, "y": 1.1e6 * ranks} for ranks in (1, 2, 4, 16)]
    texts = lines({"ideal": True}, rows)
    assert {"1", "2", "4", "16", "ideal"} <= set(texts)
    assert any(text.endswith(" M") for text in texts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (99999, "99,999"),
        (250_000, "250 k"),
        (262_144, "262,144"),
        (1_048_576, "1,048,576"),
        (1_250_000, "1.25 M"),
        (-2e9, "-2 G"),
    ],
)
def test_short_number_under_an_axis(value: float, text: str) -> None:
    assert short_number(value) == text


def test_format_bar_rounds_no_count_below_ten_thousand() -> None:
    assert [format_bar(value) for value in (1984.0, 1984.6, 19_841.0, 0.12345)] == ["1,984", "1,980", "19,800", "0.123"]
