"""How far a learner's line of 3.3 is from the times of a run."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

own_lines = beside_the_script("03-parallel-computing", "own_lines")
SAMPLES = [(size, 100e-6 + size / 2e9) for size in (1 << 10, 1 << 14, 1 << 18, 1 << 22) for _ in range(3)]


@pytest.mark.parametrize(("latency", "bandwidth", "percent"), [(100e-6, 2e9, 0.0), (200e-6, 1e9, 100.0), (50e-6, 4e9, 100.0)])
def test_typical_error_is_the_same_above_and_below_the_times(latency: float, bandwidth: float, percent: float) -> None:
    assert own_lines.typical_error_percent(SAMPLES, latency, bandwidth) == pytest.approx(percent)


def test_typical_error_is_none_without_a_line() -> None:
    assert own_lines.typical_error_percent(SAMPLES, 0.0, 2e9) is own_lines.typical_error_percent(SAMPLES, 1e-4, 0.0) is None
