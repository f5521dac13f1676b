"""The best setting of a sweep: certain only if the rounds agree."""

from __future__ import annotations

from tests.unit.exercises.scripts import beside_the_script

best_setting = beside_the_script("04-benchmarking", "best_setting")


def sweep(*rounds: tuple[float, float, float]) -> list[dict[str, float]]:
    """Return a row for the batch sizes 1, 2, 4 ...: the slowest, the median and the fastest round."""
    keys = ("low_tok_per_s", "output_tok_per_s", "high_tok_per_s")
    return [{"batch": 2**power} | dict(zip(keys, figures, strict=True)) for power, figures in enumerate(rounds)]


def test_best_setting_is_certain_if_the_rounds_agree() -> None:
    rows = sweep((98, 100, 101), (198, 200, 201), (390, 395, 397), (400, 402, 405))
    assert best_setting.choose_best(rows)["batch"] == 4
    assert best_setting.within_the_spread(rows) == [4]


def test_best_setting_is_uncertain_after_one_outlier() -> None:
    rows = sweep((98, 100, 101), (198, 200, 201), (390, 395, 397), (380, 440, 520))
    assert best_setting.choose_best(rows)["batch"] == 8
    assert best_setting.within_the_spread(rows) == [4, 8], "by its slowest round 8 at a time is no faster than 4"
    assert best_setting.within_the_spread([]) == []
