"""The formulas of scaling, with numbers worked out by hand."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    return beside_the_script("03-parallel-computing", "scaling")


def test_counts_up_to_the_number_of_ranks(scaling: ModuleType) -> None:
    assert [scaling.counts(rank_count) for rank_count in (1, 2, 3, 4, 6, 8)] == [
        [1],
        [1, 2],
        [1, 2, 3],
        [1, 2, 4],
        [1, 2, 4, 6],
        [1, 2, 4, 8],
    ]


def test_speedup_of_100_s_with_one_and_55_s_with_two(scaling: ModuleType) -> None:
    times = scaling.speedup(1 / 55, 1 / 100)
    assert times == pytest.approx(1.818, abs=1e-3)
    assert scaling.efficiency_percent(times, 2) == pytest.approx(90.9, abs=0.05)


@pytest.mark.parametrize(
    ("named", "slower", "communication", "contradicts"),
    [
        ("slower computing", 5.0, 1.0, False),
        ("communication", 5.0, 1.0, True),  # the smaller of the two
        ("communication", -1.0, -0.5, True),  # nothing was lost
        ("communication", -1.0, 0.1, False),
        ("none can be named", 5.0, 1.0, False),
        ("the network", 5.0, 1.0, True),
    ],
)
def test_contradicts_a_loss_that_is_smaller_or_not_above_zero(
    scaling: ModuleType, named: str, slower: float, communication: float, contradicts: bool
) -> None:
    assert scaling.contradicts(named, {"slower computing": slower, "communication": communication}) == contradicts
