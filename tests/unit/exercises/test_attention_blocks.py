"""Blocks of attention for 9.3, and the figures of its lesson."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
FOLDER = "09-frontier-training"


@pytest.fixture(scope="module")
def blocks() -> ModuleType:
    return beside_the_script(FOLDER, "attention_blocks")


def read_lesson() -> str:
    path = find_course({}).modules / FOLDER / "lesson-4-context.md"
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("causal", [True, False])
def test_block_over_all_keys_equals_whole_attention_with_its_gradients(blocks: ModuleType, causal: bool) -> None:
    import torch

    shape = blocks.Shape(24, 6, 2, 8)
    *leaves, gradient = (tensor.requires_grad_(place < 3) for place, tensor in enumerate(blocks.make_inputs(shape)))
    out = blocks.attend_whole(*leaves, causal)
    right = torch.autograd.grad(out, leaves, gradient)
    place = torch.arange(shape.length)
    plain = [leaf.detach() for leaf in leaves]
    given, lse = blocks.attend_block(*plain, place, place, causal)
    assert torch.allclose(given, out, atol=1e-12)
    gradients = blocks.block_gradients(gradient, (*plain, given, lse), place, place, causal)
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in zip(gradients, right, strict=True))


def test_attend_block_of_a_query_that_sees_nothing_is_zero_with_infinite_lse(blocks: ModuleType) -> None:
    import torch

    q, k, v, _ = blocks.make_inputs(blocks.Shape(8, 2, 2, 4))
    out, lse = blocks.attend_block(q, k, v, torch.arange(8), torch.arange(4, 12), True)
    assert bool((out[:, :4] == 0).all())
    assert bool((lse[:, :4] == -math.inf).all())
    assert bool(out.isfinite().all())
    assert bool(lse[:, 4:].isfinite().all())


def test_shares_of_the_course_hold_each_token_once(blocks: ModuleType) -> None:
    import torch

    for cut in (blocks.cut_contiguous, blocks.cut_striped):
        together = torch.cat([cut(24, 3, rank) for rank in range(3)])
        assert sorted(together.tolist()) == list(range(24))
    assert sum(blocks.count_pairs(blocks.cut_striped(24, 3, rank), 24, True) for rank in range(3)) == 24 * 25 // 2
    assert blocks.count_pairs(torch.arange(4), 24, False) == 96


def test_messages_count_bytes_and_tensors_that_are_alive(blocks: ModuleType) -> None:
    import weakref

    import torch

    messages = blocks.Messages(0, 4)
    messages.add([torch.zeros(3), torch.zeros(5, dtype=torch.float64)], 3)
    assert (messages.bytes, messages.count) == (3 * (12 + 40), 6)
    kept, dropped = torch.zeros(1), torch.zeros(1)
    messages.arrived = [weakref.ref(kept), weakref.ref(dropped)]
    del dropped
    assert messages.count_alive() == 1


def test_lesson_figures_of_pairs_and_bytes_follow_from_the_sizes(blocks: ModuleType) -> None:
    text = " ".join(read_lesson().split())
    pairs = [blocks.count_pairs(blocks.cut_striped(512, 4, rank), 512, True) for rank in range(4)]
    assert f"the lightest rank has {min(pairs):,} pairs and the heaviest {max(pairs):,}" in text
    keys, out, ranks = 8 * 128 * 16 * 8, 16 * 128 * 16 * 8, 8
    ring = 2 * (ranks - 1) * keys
    exchange = 2 * (ranks - 1) * (keys + out) // ranks
    assert f"| all keys gathered | {ring:,} | | {2 * (ranks - 1)} |" in text
    assert f"| ring | {ring:,} | {ring + (4 * (ranks - 1) + 2) * keys:,} | {6 * ranks - 4} |" in text
    assert f"| Ulysses | {exchange:,} | {2 * exchange:,} | {8 * (ranks - 1)} |" in text
    questions = {question.id: question for question in load(find_course({})).exercise("9.3")[1].questions}
    assert questions["hidden-grouped"].value == 312e12 / 12.5e9 * 2 * 8 / 128
    lse = math.log(math.exp(2) + math.exp(3))
    shares = [f"{100 * math.exp(one - lse):.0f} %" for one in (2, 3)]
    assert f"logsumexp {lse:.1f}, with shares of {shares[0]} and {shares[1]}" in text
