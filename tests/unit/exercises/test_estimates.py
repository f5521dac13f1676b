"""6.1: what shapes alone say of a step, and the largest batch that fits."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")
GIB, MIB = 1 << 30, 1 << 20


@pytest.fixture(scope="module")
def estimates() -> ModuleType:
    return beside_the_script("06-training-at-scale", "estimates")


@pytest.fixture(scope="module")
def techniques(estimates: ModuleType) -> ModuleType:
    """Return the very module that the estimates use, beside a device that is never full."""
    import sys

    return sys.modules["techniques"]


@pytest.fixture(scope="module")
def device_memory() -> ModuleType:
    return beside_the_script("shared", "device_memory")


@pytest.mark.slow  # torch imports its compiler for it
def test_estimate_is_what_a_step_takes(estimates: ModuleType, techniques: ModuleType, device_memory: ModuleType) -> None:
    import functools

    import torch

    if estimates.MISSING:
        pytest.skip(estimates.MISSING)
    shape = techniques.Shape(layers=2, width=64, length=32, batch=16)
    for technique in techniques.MENU[:2]:
        estimate = estimates.estimate(shape, technique)
        step = functools.partial(techniques.train, technique)
        measurement = techniques.measure(step, shape, 2, device_memory.SimulatedMemory(1 << 40), torch.device("cpu"), technique)
        assert estimate.total == pytest.approx(measurement.peak, rel=0.02)
        double_estimate = estimates.estimate(techniques.Shape(layers=2, width=64, length=32, batch=32), technique)
        assert estimates.scale(estimate, 16, 32).total == pytest.approx(double_estimate.total, rel=0.02)


def test_find_largest_batch_is_the_last_that_fits(estimates: ModuleType) -> None:
    estimate = estimates.Estimate(weights=100, gradients=0, optimizer=200, activations=400)  # of 4 sequences
    assert estimates.find_largest_batch(estimate, 4, 300 + 7 * 100) == 7
    assert estimates.find_largest_batch(estimate, 4, 300 + 8 * 100 - 1) == 7
    assert estimates.find_largest_batch(estimate, 4, 200) == 0
    assert estimates.room_on("t4") / GIB == pytest.approx(14.6, abs=0.05)
    assert [estimates.find_gpu(size * GIB) for size in (14, 16, 30, 40, 70, 200)] == [
        "t4",
        "a10g",
        "a100",
        "l40s",
        "h100",
        "none",
    ]
