"""The check of the learner's rates: right rates of a run that slows down pass, and rates of a mistake do not."""

from __future__ import annotations

from statistics import median

import pytest

from tests.unit.exercises.scripts import beside_the_script

matmuls = beside_the_script("04-benchmarking", "matmuls")
TOOK = [0.1 + 0.001 * (number % 7) for number in range(15)] + [0.2 + 0.05 * (number % 3) for number in range(10)]
CALLS = [(5.0 + sum(TOOK[:number]), took) for number, took in enumerate(TOOK)]
WORK, PEAK = 2e-12 * 512**3, 0.5
EARLY = [took for began, took in CALLS if began < 6.0]
SETTLED_S = sum(TOOK[:15])
LATE = TOOK[15:]


@pytest.mark.parametrize(
    ("burst_s", "sustained", "wrong"),
    [
        (median(EARLY), WORK * len(LATE) / sum(LATE), 0),
        (min(EARLY), WORK * len(LATE) / sum(LATE), 1),
        (median(EARLY), sum(WORK / took for took in LATE) / len(LATE), 1),
        (median(EARLY), WORK * len(TOOK[12:]) / sum(TOOK[12:]), 1),
    ],
    ids=["right", "fastest-call", "mean-of-rates", "other-calls"],
)
def test_count_wrong_rates_of_each_mistake(burst_s: float, sustained: float, wrong: int) -> None:
    rates = {"burst": WORK / burst_s, "settled_s": SETTLED_S, "sustained": sustained, "percent": 100 * sustained / PEAK}
    assert matmuls.count_wrong_rates(rates, 512, CALLS, PEAK) == wrong


def test_trace_run_has_the_windows_and_both_rates() -> None:
    rates = {"burst": 2.0, "settled_s": 1.5, "sustained": 1.0, "percent": 50.0}
    length = sum(CALLS[-1]) - CALLS[0][0]
    points = {
        line: [
            (point["seconds"], point["tflops"])
            for point in matmuls.trace_run(CALLS, 512, rates, windows=4)
            if point["line"] == line
        ]
        for line in ("measured", "your burst", "your sustained rate")
    }
    assert len(points["measured"]) == 4
    assert points["measured"][0][1] > 1.5 * points["measured"][-1][1], "the run slows down"
    assert points["your burst"] == [(0.0, 2.0), (1.0, 2.0)]
    assert points["your sustained rate"] == [(1.5, 1.0), (length, 1.0)]
    assert {point["line"] for point in matmuls.trace_run(CALLS, 512, None)} == {"measured"}


@pytest.mark.parametrize(
    ("settled_s", "sustained", "wrong"),
    [(None, None, 0), (None, 1.0, 1), (sum(TOOK[:22]), WORK * 3 / sum(TOOK[22:]), 1)],
    ids=["never", "rate-without-moment", "too-late"],
)
def test_count_wrong_rates_of_a_run_without_a_sustained_rate(
    settled_s: float | None, sustained: float | None, wrong: int
) -> None:
    percent = None if sustained is None else 100 * sustained / PEAK
    rates = {"burst": WORK / median(EARLY), "settled_s": settled_s, "sustained": sustained, "percent": percent}
    assert matmuls.count_wrong_rates(rates, 512, CALLS, PEAK) == wrong
