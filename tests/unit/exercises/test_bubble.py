"""The arithmetic of a pipeline's bubble: the formula, and a replay of orders that were drawn by hand."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def bubble() -> ModuleType:
    return beside_the_script("shared", "bubble")


def gpipe(bubble: ModuleType, stages: int, micro_batches: int, forward: float = 1.0, backward: float = 2.0) -> list[Any]:
    forward_pieces = [bubble.Piece("forward", m, forward) for m in range(micro_batches)]
    backward_pieces = [bubble.Piece("backward", m, backward) for m in range(micro_batches)]
    return [forward_pieces + backward_pieces for _ in range(stages)]


def one_f_one_b(bubble: ModuleType, stages: int, micro_batches: int) -> list[Any]:
    orders = []
    for stage in range(stages):
        warmup = stages - stage
        kinds = "F" * warmup + "BF" * (micro_batches - warmup) + "B" * warmup
        numbers = {"F": iter(range(micro_batches)), "B": iter(range(micro_batches))}
        words = {"F": ("forward", 1.0), "B": ("backward", 2.0)}
        orders.append([bubble.Piece(words[kind][0], next(numbers[kind]), words[kind][1]) for kind in kinds])
    return orders


def test_predict_bubble_by_stages_and_micro_batches(bubble: ModuleType) -> None:
    assert bubble.predict_bubble(4, 8) == pytest.approx(0.2727, abs=1e-4)
    assert bubble.predict_bubble(2, 1) == 0.5
    assert bubble.predict_bubble(1, 5) == 0
    assert bubble.predict_bubble(2, 8, chunks=2) == pytest.approx(1 / 17)
    assert [round(bubble.predict_bubble(p, 1), 6) for p in (2, 3, 4)] == [round(1 - 1 / p, 6) for p in (2, 3, 4)]


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 1), (2, 1), (2, 8), (3, 5), (4, 8), (8, 8)])
def test_replay_of_equal_stages_gives_the_formula(bubble: ModuleType, stages: int, micro_batches: int) -> None:
    for orders in (gpipe(bubble, stages, micro_batches), one_f_one_b(bubble, stages, max(micro_batches, stages))):
        m = len(orders[0]) // 2
        seconds = bubble.replay(orders)
        assert seconds == pytest.approx(3 * (m + stages - 1))
        assert bubble.idle_share(orders, seconds) == pytest.approx(bubble.predict_bubble(stages, m))


def test_replay_of_two_short_stages_per_rank_passes_each_rank_twice(bubble: ModuleType) -> None:
    """Ranks 0 and 1 have stages 0 and 2, and 1 and 3: the one micro-batch visits the ranks in turn, forward and back."""
    order = [
        bubble.Piece(*piece)
        for piece in (("forward", 0, 1, 0), ("forward", 0, 1, 1), ("backward", 0, 2, 1), ("backward", 0, 2, 0))
    ]
    assert bubble.replay([order, order]) == 12
    assert bubble.summary([order, order], 1.0)["bubble_predicted_percent"] == pytest.approx(100 / 3)


def test_replay_of_a_slow_stage_has_a_larger_bubble_than_the_formula(bubble: ModuleType) -> None:
    fast_stage, slow_stage = gpipe(bubble, 2, 4)[0], gpipe(bubble, 2, 4, forward=3.0, backward=6.0)[0]
    seconds = bubble.replay([fast_stage, slow_stage])
    assert seconds == pytest.approx(1 + 4 * 3 + 4 * 6 + 2)
    assert bubble.idle_share([fast_stage, slow_stage], seconds) > bubble.predict_bubble(2, 4) + 0.1
