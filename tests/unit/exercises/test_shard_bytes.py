"""What 6.2 says of shards: how torch pads and deals out tensors, what a ring sends, and what an optimizer keeps."""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "06-training-at-scale"
zero_formulas = beside_the_script(FOLDER, "zero_formulas")
SHAPES = ((64, 64), (32, 64), (64,), (192, 64))
LESSON = " ".join(load(find_course({})).lesson(load(find_course({})).module("6")).split())


def solution() -> ModuleType:
    return beside_the_script(f"{FOLDER}/solutions", "my_zero")


def row(stage: int, sizes: tuple[float, float, float], sent: float, explained: float = 0.0) -> dict[str, Any]:
    held = {f"{part}_bytes": size for part, size in zip(zero_formulas.PARTS, sizes, strict=True)}
    return {"stage": stage, **held, "sent_bytes": sent, "sent_explained_bytes": explained}


def test_right_formulas_are_no_byte_off_what_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_zero", solution())
    rows = [row(1, (400, 400, 200), sent=900, explained=300), row(3, (100, 100, 200), sent=900)]
    paper_off_gb, word = zero_formulas.compare(rows, 100, 4)
    assert word == "no error"
    assert paper_off_gb is not None
    assert paper_off_gb < 0.05, "the paper rounds to a tenth"
    assert [(counted["off_bytes"], counted["sent_off_bytes"]) for counted in rows] == [(0, 0), (0, 0)]
    assert [counted["by_formula_bytes"] for counted in rows] == [1000, 400]


def test_a_formula_that_fails_leaves_the_rows_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = SimpleNamespace(bytes_per_rank=lambda *_: (1, 2, 3), traffic=lambda *_: 1 / 0)
    monkeypatch.setitem(sys.modules, "my_zero", broken)
    rows = [row(0, (400, 400, 800), sent=600)]
    before = dict(rows[0])
    assert zero_formulas.compare(rows, 100, 4) == (None, "ZeroDivisionError: division by zero")
    assert rows == [before]


def test_the_lesson_quotes_the_formulas() -> None:
    formulas, parameters = solution(), 110_400
    assert parameters == 2 * (12 * 64**2 + 13 * 64) + 64 * 64 + 32 * 64 + 2 * 64 + 65 * 64
    sizes = [sum(formulas.bytes_per_rank(stage, parameters, 4, 4, 4, 8)) for stage in range(4)]
    assert "{:,.0f}, {:,.0f}, {:,.0f} and {:,.0f} bytes".format(*sizes) in LESSON
    paper = [sum(formulas.bytes_per_rank(stage, 7_500_000_000, 64, 2, 2, 12)) / 1e9 for stage in range(4)]
    quoted = re.findall(r"stage \d 7\.5 ×.*?= +([0-9.]+) GB", LESSON)
    assert quoted == [f"{size:.1f}" for size in paper]
    assert f"{4 * formulas.traffic(3, parameters, 4):,.0f} bytes, 0.99 MB, a step" in LESSON


@pytest.fixture(scope="module")
def shard_bytes() -> ModuleType:
    return beside_the_script(FOLDER, "shard_bytes")


@needs_torch
def test_whole_tensors_go_to_whoever_has_least(shard_bytes: ModuleType) -> None:
    assert shard_bytes.deal_tensors([(7,), (5,), (4,), (3,), (3,)], 2) == [10, 12]
    assert shard_bytes.deal_tensors([(2, 3)], 3) == [6, 0, 0]


@needs_torch
def test_each_tensor_is_filled_up_along_its_first_dimension(shard_bytes: ModuleType) -> None:
    assert shard_bytes.pad_numbers(SHAPES, 4) == 64 * 64 + 32 * 64 + 64 + 192 * 64
    assert shard_bytes.pad_numbers([(64,), (5, 7)], 6) == 66 + 6 * 7


@needs_torch
def test_the_shares_of_all_ranks_are_the_whole(shard_bytes: ModuleType) -> None:
    numbers = 64 * 64 + 32 * 64 + 64 + 192 * 64
    for stage in (1, 2, 3):
        moments = [shard_bytes.expect_memory(stage, SHAPES, 6, rank)["moments"] for rank in range(6)]
        assert sum(moments) == 8 * numbers
    assert shard_bytes.expect_memory(2, SHAPES, 4, 0)["weights"] == 4 * numbers
    assert shard_bytes.expect_memory(3, SHAPES, 4, 0) == {"weights": numbers, "gradients": numbers, "moments": 2 * numbers}


@needs_torch
def test_what_torch_sends_beyond_the_paper(shard_bytes: ModuleType) -> None:
    numbers = 64 * 64 + 32 * 64 + 64 + 192 * 64
    assert [shard_bytes.explain_traffic(stage, SHAPES, 4) for stage in range(4)] == [0, 0.75 * 4 * numbers, 0, 0]
    padded = shard_bytes.pad_numbers(SHAPES, 6)
    assert shard_bytes.explain_traffic(3, SHAPES, 6) == pytest.approx(3 * 5 / 6 * 4 * (padded - numbers))


@needs_torch
@pytest.mark.parametrize(
    ("name", "given", "whole"),
    [
        ("c10d.allreduce_.default", 400, {"all_reduce": 400}),
        ("c10d._allgather_base_.default", 500, {"all_gather": 400}),
        ("c10d.reduce_scatter_.default", 500, {"reduce_scatter": 400}),
        ("c10d.alltoall_base_.default", 800, {"other": 400}),
        ("_c10d_functional.all_gather_into_tensor.default", 100, {"all_gather": 400}),
        ("_c10d_functional.reduce_scatter_tensor.default", 400, {"reduce_scatter": 400}),
    ],
)
def test_a_collective_counts_its_whole_tensor(shard_bytes: ModuleType, name: str, given: int, whole: dict[str, int]) -> None:
    sent = shard_bytes.SentBytes(4)
    sent._count(name, given)
    assert sent.whole == whole
    assert sent.ring_bytes == (600 if "allreduce" in name else 300)


@needs_torch
def test_an_optimizer_keeps_what_hangs_on_it_and_not_the_weights(shard_bytes: ModuleType) -> None:
    import torch

    weight = torch.nn.Parameter(torch.zeros(10))
    weight.grad = torch.zeros(10)
    holder = SimpleNamespace(parameters=[weight], state={"m": torch.zeros(3), "view": weight.detach()[:4]}, step=torch.ones(()))
    holder.piece = torch.nn.Parameter(torch.zeros(5))
    holder.piece.grad = torch.zeros(5)
    assert shard_bytes.count_kept_numbers(holder, [weight, weight.grad]) == 3 + 5 + 5


@needs_torch
def test_a_row_has_the_mean_of_the_ranks_and_what_the_fullest_has_more() -> None:
    zero_report = beside_the_script(FOLDER, "zero_report")
    shapes = [(3, 2), (2,)]  # 8 numbers on two ranks: 2 + 1 rows and 1 + 1, so 8 + 2 with padding
    held = [
        {"weights": (size, 20), "between": (size, 20), "gradients": (size, 20), "moments": (2 * size, 2 * size)}
        for size in (20, 12)
    ]
    counted = {"whole": {"all_gather": 80, "reduce_scatter": 40}, "ring": 60.0, "calls": {"all_gather": 2, "reduce_scatter": 1}}
    stage_3 = zero_report.describe_stage(3, held, counted, shapes)
    assert (stage_3["torch_off_bytes"], stage_3["torch_sent_off_bytes"]) == (0, 0)
    assert (stage_3["state_bytes"], stage_3["more_on_fullest_bytes"]) == (64, 16)
    assert stage_3["sent_explained_bytes"] == 12, "two numbers of padding in three collectives, half of each is sent"
    wrong = zero_report.describe_stage(3, [held[0], held[0]], counted | {"whole": {"all_gather": 40}}, shapes)
    assert (wrong["torch_off_bytes"], wrong["torch_sent_off_bytes"]) == (16, 80)


@needs_torch
def test_figures_over_all_stages_wait_for_the_stages_that_they_need() -> None:
    zero_report = beside_the_script(FOLDER, "zero_report")
    more = {"loss_off": 0.0, "weights_off": 0.0, "peak_gpu_memory_bytes": None, "sent_bytes": 2e6, "moments_fullest_bytes": 7}
    rows = [row(stage, (size, size, size), 0) | more | {"state_bytes": 3 * size} for stage, size in ((0, 400), (3, 100))]
    figures = zero_report.summarise(rows)
    assert (figures["smallest_stage"], figures["state_of_3_percent"], figures["sent_mb_of_3"]) == (3, 25, 2)
    assert figures["peak_of_3_percent"] is figures["formula_off_bytes"] is figures["fullest_moments_bytes"] is None
    alone = zero_report.summarise(rows[:1])
    assert alone["loss_spread"] is alone["smallest_stage"] is alone["sent_mb_of_3"] is None
