"""The check of a learner's speed-up in 3.4: it changes the raw times, and compares the speeds that come out."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median
from types import ModuleType
from typing import Any

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")
TRAINING: dict[str, Any] = {
    "ranks": 2, "batch_per_rank": 8, "warm_up_steps": 1,
    "rows": [
        {"step": step, "rank": rank, "compute_s": ms / 2000, "communicate_s": ms / (2000 if rank == step % 2 else 1e9)}
        for step, ms in enumerate([900, 10, 12, 14, 16, 13, 90]) for rank in range(2)
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def raw_times() -> ModuleType:
    return beside_the_script("03-parallel-computing", "raw_times")


def compute_step_s(
    training: dict[str, Any], ranks: Callable[..., float] = max, steps: Callable[..., float] = median,
    keys: tuple[str, ...] = ("compute_s", "communicate_s"),
    warm_up: int = 1,
) -> float:  # fmt: skip
    times: dict[int, list[float]] = {}
    for row in training["rows"]:
        if row["step"] >= warm_up:
            times.setdefault(row["step"], []).append(sum(row[key] for key in keys))
    return steps([ranks(seconds) for seconds in times.values()])


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        ({}, None),
        ({"ranks": mean}, "with another rank at 1,000 s in each step"),
        ({"ranks": lambda seconds: seconds[0]}, "with its rows in reverse order"),
        ({"steps": mean}, "with a last step of 1,000 s"),
        ({"keys": ("compute_s",)}, "with half of its computing as communication"),
        ({"warm_up": 0, "steps": mean}, "with warm-up steps of 1,000 s"),
    ],
    ids=["right", "mean-of-ranks", "one-rank", "mean-of-steps", "without-communication", "cold-steps"],
)
def test_find_fault_names_the_change_that_contradicts_a_speed(
    raw_times: ModuleType, mistake: dict[str, Any], fault: str | None
) -> None:
    copies = {"": TRAINING} | raw_times.edit(TRAINING)
    answer = raw_times.find_fault(TRAINING, {name: 16 / compute_step_s(copy, **mistake) for name, copy in copies.items()})
    assert (answer is None) == (fault is None), answer
    assert fault is None or fault in answer


@pytest.mark.parametrize(("part", "is_right"), [("solutions", True), ("solutions/other", True), ("", False)])
def test_edit_waits_has_the_shares_that_only_a_right_part_returns(raw_times: ModuleType, part: str, is_right: bool) -> None:
    def count_all_communication(training: dict[str, Any]) -> float:
        return float(100 * mean(row["communicate_s"] / (row["compute_s"] + row["communicate_s"]) for row in training["rows"]))

    waiting = beside_the_script(f"03-parallel-computing/{part}", "my_speedup").waiting if part else count_all_communication
    shares = {name: (waiting(copy), percent) for name, (copy, percent) in raw_times.edit_waits(TRAINING).items()}
    assert all(share == pytest.approx(percent) for share, percent in shares.values()) == is_right, shares
