"""The check of a learner's speed-up in 3.4: it holds a speed against the raw times without computing one."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")
STEPS_MS = [900, 10, 12, 14, 16, 90]  # of the slowest rank; the first step is cold


@pytest.fixture(scope="module")
def raw_times() -> ModuleType:
    return beside_the_script("03-parallel-computing", "raw_times")


@pytest.mark.parametrize(
    ("step_ms", "fault"),
    [(14, None), (28.4, "4 of the 5 that count took less"), (12, "3 of the 5 that count took longer"), (7, "5 of the 5")],
    ids=["median", "mean", "below", "fastest-rank"],
)
def test_find_fault_accepts_only_the_middle_step(raw_times: ModuleType, step_ms: float, fault: str | None) -> None:
    rows = [
        {"step": step, "rank": rank, "compute_s": ms / 2000, "communicate_s": ms / (2000 if rank == step % 2 else 1e9)}
        for step, ms in enumerate(STEPS_MS)
        for rank in range(2)
    ]
    training = {"ranks": 2, "batch_per_rank": 8, "warm_up_steps": 1, "rows": rows[::-1]}
    answer = raw_times.find_fault(training, 16 / step_ms * 1e3)
    assert (answer is None) == (fault is None), answer
    assert fault is None or fault in answer
