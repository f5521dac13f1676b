"""The best setting of a sweep: certain only if the rounds agree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

best_setting = beside_the_script("04-benchmarking", "best_setting")


def sweep(*rounds: tuple[float, float, float]) -> list[dict[str, float]]:
    """Return a row for the batch sizes 1, 2, 4 ...: the slowest, the median and the fastest round."""
    keys = ("low_tok_per_s", "output_tok_per_s", "high_tok_per_s")
    return [{"batch": 2**power} | dict(zip(keys, figures, strict=True)) for power, figures in enumerate(rounds)]


def test_best_setting_is_certain_if_the_rounds_agree() -> None:
    rows = sweep((98, 100, 101), (198, 200, 201), (390, 395, 397), (400, 402, 405))
    assert best_setting.choose_best(rows)["batch"] == 4
    assert best_setting.list_within_spread(rows) == [4]


def test_best_setting_is_uncertain_after_one_outlier() -> None:
    rows = sweep((98, 100, 101), (198, 200, 201), (390, 395, 397), (380, 440, 520))
    assert best_setting.choose_best(rows)["batch"] == 8
    assert best_setting.list_within_spread(rows) == [4, 8], "by its slowest round 8 at a time is no faster than 4"
    assert best_setting.list_within_spread([]) == []


@pytest.mark.parametrize(("chosen", "wrong"), [(1, 1), (2, 0), (4, 1), (8, 1), (None, 1)])
def test_count_wrong_batch_sizes(chosen: int | None, wrong: int) -> None:
    rounds = {1: [98.0, 101.0], 2: [380.0, 402.0], 4: [390.0, 405.0], 8: [700.0, 710.0]}
    sweep = {
        batch: [([{"ttft_ms": 100.0, "tpot_ms": 20.0 if batch < 8 else 90.0, "tokens": 10}], 10 / speed) for speed in speeds]
        for batch, speeds in rounds.items()
    }
    answer: dict[str, Any] = {
        "goodput": {str(batch): speeds if batch < 8 else [0.0, 0.0] for batch, speeds in rounds.items()},
        "batch": chosen,
    }
    limits = {"ttft_ms": 150.0, "tpot_ms": 50.0, "percent": 90.0}
    assert best_setting.count_wrong(sweep, answer, limits) == wrong
    answer["goodput"]["2"][0] = 300.0
    assert best_setting.count_wrong(sweep, answer, limits) == wrong + 1
