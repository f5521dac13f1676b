from __future__ import annotations

import pytest

from gpucourse.ui.page.scales import make_scale, make_word_scale


def test_make_scale_places_its_ends_at_the_ends_of_the_drawing() -> None:
    scale = make_scale([0, 10], 100, 0, from_zero=True)
    assert (scale.place(0), scale.place(scale.high)) == (100, 0)
    assert make_word_scale(["one", "two"], 0, 100).place(0) == 25


@pytest.mark.parametrize(
    ("values", "keys", "labels"),
    [
        ([0, 10], {"from_zero": True}, ["0", "2", "4", "6", "8", "10"]),
        ([1, 1000], {"log": True}, ["1", "10", "100", "1,000"]),
        ([1 << 10, 1 << 20], {"log": True, "sizes": True}, ["1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"]),
        ([1, 2, 8], {"at_values": True}, ["1", "2", "8"]),
        ([5], {}, ["3", "4", "5", "6", "7"]),
    ],
)
def test_make_scale_has_ticks_at_round_numbers_or_the_values(
    values: list[float], keys: dict[str, bool], labels: list[str]
) -> None:
    assert [label for _, label in make_scale(values, 0, 100, **keys).ticks] == labels
