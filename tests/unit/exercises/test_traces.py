"""The traces of 5.11: each has the fault that was planted, and the planter's answers are those of a reader."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = "05-gpu-programming"


@pytest.fixture(scope="module")
def traces() -> ModuleType:
    return beside_the_script(FOLDER, "traces")


@pytest.fixture(scope="module")
def reader() -> ModuleType:
    return beside_the_script(f"{FOLDER}/solutions", "my_trace")


@pytest.mark.parametrize("seed", range(8))
def test_plant_makes_traces_whose_answers_a_reader_confirms(traces: ModuleType, reader: ModuleType, seed: int) -> None:
    for fault in (*traces.FAULTS, traces.NO_FAULT):
        trace, answers = traces.plant(fault, seed)
        events = trace["traceEvents"]
        assert reader.name_fault(events) == fault
        assert reader.busy_percent(events) == pytest.approx(answers["busy_percent"])
        assert (reader.exposed_us(events), reader.range_us(events)) == (answers["exposed_us"], answers["range_us"])
        assert reader.longest_gap(events) == (answers["gap_us"], answers["gap_call"])
        assert all("dur" in event for event in events if event["ph"] == "X")


def test_plant_returns_the_same_trace_for_a_seed(traces: ModuleType) -> None:
    assert traces.plant("none", 3) == traces.plant("none", 3) != traces.plant("none", 4)


def test_each_fault_makes_training_longer(traces: ModuleType) -> None:
    for seed in range(20):
        healthy = traces.plant(traces.NO_FAULT, seed)[1]["span_us"]
        assert all(traces.plant(fault, seed)[1]["span_us"] > 1.05 * healthy for fault in traces.FAULTS), seed
