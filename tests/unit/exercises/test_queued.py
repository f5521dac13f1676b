"""1.1's device with a queue: which figures of a learner's timer agree with what it recorded."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

CALLS, CALL_S = 4, 0.01


@pytest.mark.parametrize(
    ("figure_s", "verdict"),
    [
        (0.01, "right"),
        (0.019, "right"),  # each wait ended 40 ms late, because other programs had the processor
        (0.001, "size 8: 1 ms, but the device recorded 10 ms"),
        (0.03, "size 8: 30 ms, but the device recorded 10 ms"),
    ],
)
def test_find_fault_accepts_a_figure_between_the_work_and_the_waits(figure_s: float, verdict: str) -> None:
    torch = pytest.importorskip("torch")
    queued = beside_the_script("01-basic-gpu", "queued")
    device = queued.Device(8, torch.float32)
    for period in range(4):
        start_s = 8 * CALL_S * period
        device.counts[period] = CALLS
        device.spans += [(period, start_s + call * CALL_S, start_s + (call + 1) * CALL_S) for call in range(CALLS)]
        device.waited[period] = start_s + 8 * CALL_S
    assert queued.find_fault(device, 8, figure_s, CALLS) == verdict
