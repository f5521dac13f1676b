"""6.1: what a step of each technique holds by counting, and what its products cost."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")


@pytest.fixture(scope="module")
def techniques() -> ModuleType:
    return beside_the_script("06-training-at-scale", "techniques")


@pytest.fixture(scope="module")
def device_memory() -> ModuleType:
    return beside_the_script("shared", "device_memory")


@pytest.mark.slow
def test_measure_of_each_technique_is_what_it_says(techniques: ModuleType, device_memory: ModuleType) -> None:
    import functools

    import torch

    torch.set_num_threads(1)
    shape, cpu = techniques.Shape(layers=2, width=32, length=16, batch=16, vocabulary=64), torch.device("cpu")
    result = {}
    for technique in techniques.MENU:
        step = functools.partial(techniques.train, technique)
        result[technique.name] = techniques.measure(step, shape, 2, device_memory.SimulatedMemory(1 << 40), cpu, technique)
    plain = result["plain step"]
    parameters = 2 * (12 * 32**2 + 13 * 32) + 64 * 32 + 16 * 32 + 2 * 32 + 33 * 64
    products = 2 * 12 * 32**2 + 64 * 32
    assert plain.held == 16 * parameters
    assert result["... and SGD instead of AdamW"].held == 8 * parameters
    assert plain.flops == result["4 micro-batches"].flops == 6 * 16 * 16 * products, "two forward, four backward, each token"
    assert result["checkpoint every block"].flops == plain.flops + 2 * 16 * 16 * 2 * 8 * 32**2, "all but the product by down"
    for technique in techniques.MENU:
        measurement = result[technique.name]
        assert measurement.calls == technique.parts
        if technique.same_training:
            assert measurement.losses == pytest.approx(plain.losses, abs=1e-5)
        assert measurement.peak <= plain.peak
    full = techniques.measure(
        functools.partial(techniques.train, techniques.PLAIN), shape, 2, device_memory.SimulatedMemory(plain.peak - 512), cpu
    )
    assert full.error
    assert "out of memory" in full.error
    assert full.peak is None


def test_drop_weights_keeps_one_copy(techniques: ModuleType) -> None:
    """Each copy is 2.7 GB for the model of a GPU: eight of them are more than a g4dn.xlarge has."""
    results = [(technique, techniques.Measurement(weights=[object()])) for technique in techniques.MENU]
    results[0][1].error, results[0][1].weights = "out of memory", []
    techniques.drop_weights(results)
    assert [bool(measurement.weights) for _, measurement in results] == [False, True, *[False] * (len(results) - 2)]
    assert techniques.find_reference(results) is results[1]
    assert techniques.find_reference(results[:1]) is None
