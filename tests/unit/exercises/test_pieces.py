"""The clock of pipelines with a split backward: published schedules, their formulas, and what ranks hold."""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

pieces = beside_the_script("shared", "pieces")
schedules = beside_the_script("09-frontier-training", "schedules")
TIMES = [(1, 1, 1), (10, 12, 8), (3, 4, 2), (2, 2, 1), (Fraction(1, 3), Fraction(1, 2), Fraction(1, 7))]
SIZES = [(2, 8), (4, 8), (4, 16), (8, 16)]


def order_zero_bubble(stages: int, micro_batches: int) -> list[list[Any]]:
    """Return ZB-H1 as its solution has it."""
    solution = beside_the_script("09-frontier-training", "solutions/my_order")
    return [[(pieces.Piece(kind, stage, number),) for kind, number in solution.order_of_stage(stage, stages, micro_batches)]
            for stage in range(stages)]  # fmt: skip


@pytest.mark.parametrize("durations", TIMES)
@pytest.mark.parametrize(("ranks", "micro_batches"), SIZES)
def test_simulate_leaves_the_bubble_of_the_published_formulas(ranks: int, micro_batches: int, durations: Any) -> None:
    times = pieces.Times(*durations)
    orders = {
        ("gpipe", 1): schedules.order_gpipe(ranks, micro_batches),
        ("1f1b", 1): schedules.order_1f1b(ranks, micro_batches),
        ("interleaved", 2): schedules.order_interleaved(ranks, micro_batches, 2),
        ("interleaved", 4): schedules.order_interleaved(ranks, micro_batches, 4),
        ("zb-h1", 1): order_zero_bubble(ranks, micro_batches),
    }
    for (name, chunks), slots in orders.items():
        clock = pieces.simulate(slots, ranks * chunks, times.of)
        assert clock.bubble / chunks == pytest.approx(pieces.predict_bubble_time(name, ranks, times, chunks), abs=1e-12), name
        assert clock.busy == [micro_batches * chunks * times.step] * ranks
        assert max(map(pieces.count_held, slots)) == chunks * pieces.predict_held(name, ranks, micro_batches, chunks), name


@pytest.mark.parametrize("durations", [(1, 2, 3), (1, 1, 3), (5, 1, 4), (2, 5, 3)])
def test_predict_bubble_time_counts_long_weights_as_the_shorter_other_piece(durations: Any) -> None:
    times = pieces.Times(*durations)
    assert pieces.simulate(order_zero_bubble(4, 8), 4, times.of).bubble == pieces.predict_bubble_time("zb-h1", 4, times)


@pytest.mark.parametrize("durations", [(1, 1, 1), (3, 3, 2), (2, 2, 1)])
@pytest.mark.parametrize(("ranks", "micro_batches"), [(4, 8), (4, 16), (8, 16), (8, 32)])
def test_dual_pipe_has_its_published_bubble_and_memory_if_forward_equals_inputs(
    ranks: int, micro_batches: int, durations: Any
) -> None:
    times, orders = pieces.Times(*durations), schedules.order_dual_pipe(ranks, micro_batches)
    assert pieces.simulate(orders, ranks, times.of).bubble == pieces.predict_bubble_time("dualpipe", ranks, times)
    assert max(map(pieces.count_held, orders)) == ranks + 1 == pieces.predict_held("dualpipe", ranks, micro_batches)
    dear = pieces.Times(10, 12, 8)
    assert pieces.simulate(orders, ranks, dear.of).bubble == (ranks // 2 - 1) * 24, "the formula says 26"


def test_a_pair_that_overlaps_shortens_dual_pipe() -> None:
    orders = schedules.order_dual_pipe(4, 8)
    ends = [pieces.simulate(orders, 4, pieces.Times(1, 1, 1, pair=pair).of).end for pair in (None, 2)]
    assert ends == [26, 22]


def test_zero_bubble_v_gains_from_its_second_step_on() -> None:
    orders = schedules.order_zero_bubble_v(4, 8)
    equal = pieces.Times(1, 1, 1)
    ends = [pieces.simulate(pieces.repeat(orders, steps, 8), 8, equal.of).end for steps in (1, 2, 3, 4)]
    assert ends == [51, 99, 147, 195]
    baseline = schedules.order_1f1b(4, 8)
    assert [pieces.simulate(pieces.repeat(baseline, steps, 8), 4, equal.of).end for steps in (1, 2, 3)] == [33, 66, 99]
    unequal = [pieces.simulate(pieces.repeat(orders, steps, 8), 8, pieces.Times(10, 12, 8).of).end for steps in (3, 4)]
    assert unequal[1] - unequal[0] - 16 * 30 == 24


@pytest.mark.parametrize(("ranks", "micro_batches"), [(2, 8), (4, 8), (8, 16), (4, 4)])
def test_zero_bubble_v_has_the_order_of_torch(torch: ModuleType, ranks: int, micro_batches: int) -> None:
    from torch.distributed.pipelining import schedules as of_torch

    schedule = object.__new__(of_torch.ScheduleZBVZeroBubble)
    schedule.pp_group_size, schedule._n_microbatches, schedule.num_stages = ranks, micro_batches, 2 * ranks
    kinds = {"FORWARD": "forward", "BACKWARD_INPUT": "inputs", "BACKWARD_WEIGHT": "weights"}
    orders = [
        [(pieces.Piece(kinds[action.computation_type.name], action.stage_index, action.microbatch_index),)
         for action in schedule._calculate_single_rank_operations(rank) if action]
        for rank in range(ranks)
    ]  # fmt: skip
    assert orders == schedules.order_zero_bubble_v(ranks, micro_batches)


def test_count_held_until_inputs_misses_what_the_weights_need() -> None:
    order = order_zero_bubble(4, 8)[3]
    assert (pieces.count_held(order, pieces.INPUTS), pieces.count_held(order)) == (1, 4)


def test_count_messages_counts_activations_and_gradients_between_ranks() -> None:
    assert pieces.count_messages(schedules.order_1f1b(4, 8), 4) == 2 * 3 * 8
    assert pieces.count_messages(order_zero_bubble(4, 8), 4) == 2 * 3 * 8
    assert pieces.count_messages(schedules.order_zero_bubble_v(4, 8), 8) == 2 * 6 * 8, "the turn of the V stays on its rank"
    assert pieces.count_messages(schedules.order_interleaved(4, 8, 2), 8) == 2 * 7 * 8
    assert pieces.count_messages(schedules.order_dual_pipe(4, 8), 4) == 2 * 3 * 8


def test_simulate_names_what_waits_for_ever() -> None:
    orders = [[(pieces.Piece("backward", 0, 0),), (pieces.Piece("forward", 0, 0),)]]
    with pytest.raises(ValueError, match="no rank can go on: stage 0: backward 0"):
        pieces.simulate(orders, 1, pieces.Times(1, 1, 1).of)


def test_formulas_refuse_a_schedule_that_has_none() -> None:
    with pytest.raises(ValueError, match="no formula for zigzag"):
        pieces.predict_bubble_time("zigzag", 4, pieces.Times(1, 1, 1))
    with pytest.raises(ValueError, match="no formula for zigzag"):
        pieces.predict_held("zigzag", 4, 8)
