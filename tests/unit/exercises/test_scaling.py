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
    assert scaling.serial_percent(times, 2) == pytest.approx(10.0)


def test_serial_percent_returns_the_share_of_amdahl(scaling: ModuleType) -> None:
    for serial in (0.0, 0.05, 0.5, 1.0):
        for workers in (2, 4, 64):
            assert scaling.serial_percent(1 / (serial + (1 - serial) / workers), workers) == pytest.approx(100 * serial)
    assert scaling.serial_percent(1.0, 1) is None


def test_describe_serial_share_is_never_negative(scaling: ModuleType) -> None:
    assert scaling.describe_serial_share(1.6, 1.8, 2) == "11.1 to 25.0"
    assert scaling.describe_serial_share(1.6, 2.1, 2) == "at most 25.0"
    assert scaling.describe_serial_share(2.01, 2.1, 2) == "within noise"
    assert scaling.describe_serial_share(0.9, 1.1, 1) is None


@pytest.mark.parametrize(
    ("slower", "communication", "noise", "names"),
    [
        (5.0, 1.0, 2.0, "slower computing"),
        (0.2, 3.0, 1.0, "communication"),
        (-1.0, -0.5, 0.1, "none can be named"),  # both below zero: nothing was lost
        (5.0, 4.5, 1.0, "none can be named"),  # both are losses, and which is larger is noise
        (0.9, 0.0, 1.0, "none can be named"),
    ],
)
def test_name_bottleneck_only_above_the_noise(
    scaling: ModuleType, slower: float, communication: float, noise: float, names: str
) -> None:
    losses = {"slower_computing_ms": slower, "communication_ms": communication}
    assert scaling.name_bottleneck(losses, noise) == names
