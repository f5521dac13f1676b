"""The replay of streams and events: times by the formula, hazards with both operations, and values in the worst order."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def streams() -> ModuleType:
    return beside_the_script("05-gpu-programming", "streams")


@pytest.fixture(scope="module")
def solution() -> ModuleType:
    return beside_the_script("05-gpu-programming", "solutions/my_pipeline")


def queue(device: Any, chunks: int, *, orders: bool = True) -> None:
    """Three streams; with `orders` an event from one to the next, and nothing that keeps a buffer until it is free."""
    first, second, third = device.stream(), device.stream(), device.stream()
    for chunk in range(chunks):
        buffer = chunk % device.buffers
        device.copy_in(first, chunk, buffer)
        if orders:
            device.wait(second, device.record(first))
        device.compute(second, buffer)
        if orders:
            device.wait(third, device.record(second))
        device.copy_out(third, buffer, chunk)


@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0), (1.0, 3.0, 1.0), (2.0, 3.0, 1.0), (0.5, 0.25, 4.0)])
@pytest.mark.parametrize("chunks", [2, 8, 20])
def test_best_units_are_those_of_the_formula_from_three_buffers_on(
    streams: ModuleType, solution: ModuleType, chunks: int, units: tuple[float, float, float]
) -> None:
    formula = chunks * max(units) + sum(units) - max(units)
    for buffers in (3, 4, 8):
        assert streams.best_units(chunks, units, buffers) == pytest.approx(formula)
    device = streams.ReplayedDevice(chunks, 3, units)
    solution.run(device, chunks)
    assert streams.replay(device.operations).units == pytest.approx(formula)
    assert streams.find_hazards(device.operations) == []
    assert streams.count_wrong(device.operations, [], chunks, 3) == 0


@pytest.mark.parametrize(("buffers", "units", "percent"), [(1, 24, 0), (2, 13, 78.571429), (3, 10, 100), (4, 10, 100)])
def test_overlap_percent_by_the_number_of_buffers(
    streams: ModuleType, solution: ModuleType, buffers: int, units: float, percent: float
) -> None:
    device = streams.ReplayedDevice(8, buffers)
    solution.run(device, 8)
    took = streams.replay(device.operations).units
    assert (took, streams.overlap_percent(took, 24, 10)) == (units, percent)
    assert took == streams.best_units(8, (1, 1, 1), buffers), "no order of the same work is faster"


@pytest.mark.parametrize(("compute", "best"), [(1.0, 4.0), (3.0, 8.0), (0.1, 4.0)])
def test_best_time_of_one_copy_engine_is_that_of_the_copies_or_of_the_kernels_between_two_copies(
    compute: float, best: float
) -> None:
    """The engine can copy chunks 0 and 1 in and then out without a pause, while the kernels run."""
    gpu_streams = beside_the_script("05-gpu-programming", "gpu_streams")
    times = {"copy in": 1.0, "compute": compute, "copy out": 1.0}
    assert gpu_streams.find_best_ms(2, times, 2, 1) == best


def test_replay_without_events_is_too_fast_and_all_wrong(streams: ModuleType) -> None:
    device = streams.ReplayedDevice(8, 2)
    queue(device, 8, orders=False)
    hazards = streams.find_hazards(device.operations)
    took = streams.replay(device.operations).units
    assert (took, round(streams.overlap_percent(took, 24, 10))) == (8, 114)
    assert str(hazards[0]) == 'no stream or event orders "copy chunk 0 into buffer 0" and "compute chunk 0 in buffer 0"'
    assert streams.count_wrong(device.operations, hazards, 8, 2) == 8


def test_find_hazards_sees_what_the_clock_hides(streams: ModuleType) -> None:
    device = streams.ReplayedDevice(5, 3)
    queue(device, 5)
    spans = {str(operation): (begin, end) for operation, begin, end in streams.replay(device.operations).spans}
    assert spans["copy chunk 0 out of buffer 0"][1] <= spans["copy chunk 3 into buffer 0"][0], "by the clock it is in order"
    hazards = streams.find_hazards(device.operations)
    assert {(str(hazard.first), str(hazard.second)) for hazard in hazards if hazard.second.chunk == 3} >= {
        ("compute chunk 0 in buffer 0", "copy chunk 3 into buffer 0"),
        ("copy chunk 0 out of buffer 0", "copy chunk 3 into buffer 0"),
    }
    assert streams.count_wrong(device.operations, hazards, 5, 3) == 4


def test_record_covers_what_was_in_its_stream_then(streams: ModuleType) -> None:
    device = streams.ReplayedDevice(1, 1)
    first, second = device.stream(), device.stream()
    event = device.record(first)
    device.copy_in(first, 0, 0)
    device.wait(second, event)
    device.compute(second, 0)
    assert len(streams.find_hazards(device.operations)) == 1
    device = streams.ReplayedDevice(1, 1)
    first, second = device.stream(), device.stream()
    device.copy_in(first, 0, 0)
    device.wait(second, device.record(first))
    device.compute(second, 0)
    assert streams.find_hazards(device.operations) == []


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda device: device.compute(device.stream(), 3), ValueError, "buffer 3: there are 3, numbered from 0"),
        (lambda device: device.copy_in(device.stream(), 8, 0), ValueError, "chunk 8: there are 8, numbered from 0"),
        (lambda device: device.compute(0, 0), TypeError, "must come from device.stream()"),
        (lambda device: device.wait(device.stream(), None), TypeError, "an event of device.record, not NoneType"),
    ],
    ids=["buffer", "chunk", "stream", "event"],
)
def test_replayed_device_refuses_what_does_not_exist(
    streams: ModuleType, call: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(").replace(")", r"\)")):
        call(streams.ReplayedDevice(8, 3))


def test_replayed_device_ends_a_loop_that_queues_for_ever(streams: ModuleType) -> None:
    device = streams.ReplayedDevice(8, 3)
    stream = device.stream()
    for _ in range(800):
        device.compute(stream, 0)
    with pytest.raises(ValueError, match="800 operations are queued for 8 chunks: does the loop end"):
        device.compute(stream, 0)
