"""6.1: what a step holds by counting, what its products cost, what shapes alone say, and the figures of the lesson."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from docs.pictures import training_memory as picture

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")

CATALOG = load(find_course({}))
LESSON = " ".join((Path(CATALOG.folders.modules) / "06-training-at-scale/lesson.md").read_text(encoding="utf-8").split())
GIB, MIB = 1 << 30, 1 << 20


@pytest.fixture(scope="module")
def estimates() -> ModuleType:
    return beside_the_script("06-training-at-scale", "estimates")


@pytest.fixture(scope="module")
def techniques(estimates: ModuleType) -> ModuleType:
    """The very module that the estimates use, beside a device that is never full."""
    import sys

    return sys.modules["techniques"]


@pytest.fixture(scope="module")
def device_memory() -> ModuleType:
    return beside_the_script("shared", "device_memory")


def test_the_lesson_counts_as_the_picture_does() -> None:
    plain, both = picture.follow_step(1, checkpointed=False), picture.follow_step(4, checkpointed=True)
    whole = sum(picture.KEPT.values())
    after = 3 * picture.WEIGHTS + 4 * whole + picture.SCORES
    assert f"= 84.8 MiB (measured: 85.1) peak = that + the gradient of the scores, 4 = {after + 4:.1f} MiB" in LESSON
    assert max(moment.total for moment in plain) == pytest.approx(after + 4)
    assert max(moment.total for moment in both) == pytest.approx(20.7, abs=0.7), "what the device counted"
    parameters = round(picture.WEIGHTS * MIB / 4)
    assert f"{parameters:,} parameters and {16 * parameters / MIB:.2f} MiB" in LESSON


@pytest.mark.slow
def test_a_step_of_every_technique_holds_what_it_says(techniques: ModuleType, device_memory: ModuleType) -> None:
    import functools

    import torch

    torch.set_num_threads(1)
    shape, cpu = techniques.Shape(layers=2, width=32, length=16, batch=7, vocabulary=64), torch.device("cpu")
    result = {}
    for technique in techniques.MENU:
        step = functools.partial(techniques.train, technique)
        result[technique.label] = techniques.measure(step, shape, 2, device_memory.SimulatedMemory(1 << 40), cpu, technique)
    plain = result["plain"]
    parameters = 2 * (12 * 32**2 + 13 * 32) + 64 * 32 + 16 * 32 + 2 * 32 + 33 * 64
    products = 2 * 12 * 32**2 + 64 * 32
    assert plain.held == 16 * parameters
    assert result["SGD"].held == 8 * parameters
    assert plain.flops == result["4 parts"].flops == 6 * 7 * 16 * products, "two for forward, four for backward, each token"
    assert result["ckpt all"].flops == plain.flops + 2 * 7 * 16 * 2 * 8 * 32**2, "all of a block but the product by down"
    for technique in techniques.MENU:
        measured = result[technique.label]
        assert measured.calls == min(technique.parts, 7)
        if technique.same_training:
            assert measured.losses == pytest.approx(plain.losses, abs=1e-5)
        assert measured.peak <= plain.peak
    full = techniques.measure(
        functools.partial(techniques.train, techniques.PLAIN), shape, 2, device_memory.SimulatedMemory(plain.peak - 512), cpu
    )
    assert full.error
    assert "out of memory" in full.error
    assert full.peak is None


def test_of_the_weights_that_trainings_end_with_one_copy_stays(techniques: ModuleType) -> None:
    """Each copy is 2.7 GB for the model of a GPU: eight of them are more than a g4dn.xlarge has."""
    results = [(technique, techniques.Measurement(weights=[object()])) for technique in techniques.MENU]
    results[0][1].error, results[0][1].weights = "out of memory", []
    techniques.drop_weights(results)
    assert [bool(measurement.weights) for _, measurement in results] == [False, True, *[False] * (len(results) - 2)]
    assert techniques.find_reference(results) is results[1]
    assert techniques.find_reference(results[:1]) is None


def test_shapes_alone_say_what_a_step_takes(estimates: ModuleType, techniques: ModuleType, device_memory: ModuleType) -> None:
    import functools

    import torch

    if estimates.MISSING:
        pytest.skip(estimates.MISSING)
    shape = techniques.Shape(layers=2, width=64, length=32, batch=16)
    for technique in techniques.MENU[:2]:
        estimate = estimates.estimate(shape, technique)
        step = functools.partial(techniques.train, technique)
        measured = techniques.measure(step, shape, 2, device_memory.SimulatedMemory(1 << 40), torch.device("cpu"), technique)
        assert estimate.total == pytest.approx(measured.peak, rel=0.02)
        twice = estimates.estimate(techniques.Shape(layers=2, width=64, length=32, batch=32), technique)
        assert estimates.scale(estimate, 16, 32).total == pytest.approx(twice.total, rel=0.02)


def test_the_largest_batch_is_the_last_that_fits(estimates: ModuleType) -> None:
    known = estimates.Estimate(weights=100, gradients=0, optimizer=200, activations=400)  # of 4 sequences
    assert estimates.find_largest_batch(known, 4, 300 + 7 * 100) == 7
    assert estimates.find_largest_batch(known, 4, 300 + 8 * 100 - 1) == 7
    assert estimates.find_largest_batch(known, 4, 200) == 0
    assert estimates.room_on("t4") / GIB == pytest.approx(14.6, abs=0.05)
    assert [estimates.find_gpu(size * GIB) for size in (14, 16, 30, 40, 70, 200)] == [
        "t4",
        "a10g",
        "a100",
        "l40s",
        "h100",
        "none",
    ]


def test_the_estimated_model_of_the_lesson(estimates: ModuleType) -> None:
    large = estimates.LARGE
    layers, width, length, tokens = large.layers, large.width, large.length, large.vocabulary
    parameters = layers * (12 * width**2 + 13 * width) + tokens * width + length * width + 2 * width + (width + 1) * tokens
    rows = [layers * 16 * length * width * 4 / GIB, 3 * length * tokens * 4 / GIB, 12 * parameters / GIB]
    assert f"{parameters / 1e6:.0f} million parameters" in LESSON
    for row in rows:
        assert f" {row:.2f} GiB" in LESSON
    assert int((estimates.room_on("t4") / GIB - rows[2]) / (rows[0] + rows[1])) == 11
    assert "is 11 sequences" in LESSON
