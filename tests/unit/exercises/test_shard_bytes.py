"""How torch pads and deals out tensors in 6.2, what a ring sends, and what an optimizer keeps."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "shared"
SHAPES = ((64, 64), (32, 64), (64,), (192, 64))


@pytest.fixture(scope="module")
def shard_bytes() -> ModuleType:
    return beside_the_script(FOLDER, "shard_bytes")


@needs_torch
def test_deal_tensors_gives_to_the_rank_that_has_least(shard_bytes: ModuleType) -> None:
    assert shard_bytes.deal_tensors([(7,), (5,), (4,), (3,), (3,)], 2) == [10, 12]
    assert shard_bytes.deal_tensors([(2, 3)], 3) == [6, 0, 0]


@needs_torch
def test_expect_memory_of_all_ranks_is_the_whole(shard_bytes: ModuleType) -> None:
    numbers = 64 * 64 + 32 * 64 + 64 + 192 * 64
    for stage in (1, 2, 3):
        moments = [shard_bytes.expect_memory(stage, SHAPES, 6, rank)["moments"] for rank in range(6)]
        assert sum(moments) == 8 * numbers
    assert shard_bytes.expect_memory(2, SHAPES, 4, 0)["weights"] == 4 * numbers
    assert shard_bytes.expect_memory(3, SHAPES, 4, 0) == {"weights": numbers, "gradients": numbers, "moments": 2 * numbers}


@needs_torch
@pytest.mark.parametrize(
    ("name", "byte_count", "whole"),
    [
        ("c10d.allreduce_.default", 400, {"all_reduce": 400}),
        ("c10d._allgather_base_.default", 500, {"all_gather": 400}),
        ("c10d.reduce_scatter_.default", 500, {"reduce_scatter": 400}),
        ("c10d.alltoall_base_.default", 800, {"other": 400}),
        ("c10d.send.default", 300, {"send": 300}),
        ("_c10d_functional.all_gather_into_tensor.default", 100, {"all_gather": 400}),
        ("_c10d_functional.reduce_scatter_tensor.default", 400, {"reduce_scatter": 400}),
    ],
)
def test_sent_bytes_count_the_whole_tensor_of_a_collective(
    shard_bytes: ModuleType, name: str, byte_count: int, whole: dict[str, int]
) -> None:
    counter = shard_bytes.SentBytes(4)
    counter._count(name, byte_count)
    assert counter.whole == whole
    assert counter.ring_bytes == (600 if "allreduce" in name else 300)


@needs_torch
def test_count_kept_numbers_leaves_the_weights_out(shard_bytes: ModuleType) -> None:
    import torch

    weight = torch.nn.Parameter(torch.zeros(10))
    weight.grad = torch.zeros(10)
    holder = SimpleNamespace(parameters=[weight], state={"m": torch.zeros(3), "view": weight.detach()[:4]}, step=torch.ones(()))
    holder.piece = torch.nn.Parameter(torch.zeros(5))
    holder.piece.grad = torch.zeros(5)
    assert shard_bytes.count_kept_numbers(holder, [weight, weight.grad]) == 3 + 5 + 5
