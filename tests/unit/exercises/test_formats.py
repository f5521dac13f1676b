"""The number formats of 8.6, the model that is rounded, and the figures of its lesson."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from gpucourse.course.locate import find_course
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
FOLDER = "08-inference-engines"


@pytest.fixture(scope="module")
def formats() -> ModuleType:
    return beside_the_script(FOLDER, "formats")


def read_lesson() -> str:
    path = find_course({}).modules / FOLDER / "lesson-7-fewer-bits.md"
    return " ".join(path.read_text(encoding="utf-8").split())


def test_rounding_is_off_by_at_most_half_a_step(formats: ModuleType) -> None:
    import torch

    weight = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    groups = weight.view(8, 4, 16)
    steps = (groups.amax(-1).clamp(min=0) - groups.amin(-1).clamp(max=0)) / 15
    off = (formats.round_in_groups(weight, 4, 16) - weight).abs().view(8, 4, 16).amax(-1)
    assert bool((off <= 0.51 * steps).all())
    assert float((formats.round_all(weight, 8) - weight).abs().max()) <= 0.5001 * float(weight.abs().max()) / 127
    assert float(((formats.round_to_fp8(weight, 1) - weight) / weight).abs().median()) < 1 / 16


def test_round_to_fp4_has_the_numbers_of_both_formats(formats: ModuleType) -> None:
    import torch

    numbers = torch.tensor([0.0, 0.5, -1.0, 1.5, 2.0, -3.0, 4.0, 6.0] * 4)
    assert torch.equal(formats.round_to_fp4(numbers[None], 32), numbers[None])
    assert formats.round_to_fp4(numbers[None], 16) == pytest.approx(numbers[None], abs=1e-5)
    assert formats.round_to_fp4(torch.tensor([[2.6, 6.0] + [0.2] * 30]), 32)[0, :3].tolist() == [3.0, 6.0, 0.0]


def test_list_step_times_in_16_bits_are_those_of_the_clock(formats: ModuleType) -> None:
    clock = formats.Clock()
    plain, products, lone = formats.list_step_times(
        clock, {"16": (16.0, False), "fp8": (8.0, True), "weights": (8.0, False)}, (1, 512), 100
    )
    assert plain["sim_ms_batch_1"] == pytest.approx(clock.ns([(100, 1)]) / 1e6, rel=1e-4)
    assert plain["sim_ms_batch_512"] == pytest.approx(clock.ns([(100, 1)] * 512) / 1e6, rel=0.02), "without attention"
    assert lone["sim_ms_batch_512"] == plain["sim_ms_batch_512"] > 1.5 * products["sim_ms_batch_512"]
    assert plain["cache_tokens"] // 16 == clock.pages()
    (old,) = formats.list_step_times(formats.Clock(gpu="t4"), {"fp8": (8.0, True)}, (1,), 100)
    assert old["sim_ms_batch_1"] is None, "a T4 has no FP8"


def test_plant_outliers_keeps_the_function_and_the_ruler_sees_rounding() -> None:
    import torch

    rounded_model = beside_the_script(FOLDER, "rounded_model")
    text = torch.randint(256, (30_000,), generator=torch.Generator().manual_seed(1))
    model = rounded_model.SmallModel(dtype=torch.float32, spread=0.2, **rounded_model.SHAPE)
    ruler = rounded_model.Ruler.of(model, text)
    planted = rounded_model.plant_outliers(model, 40)
    assert ruler.measure(planted)["kl_millinats"] == pytest.approx(0, abs=1e-4)
    largest = rounded_model.watch_inputs(planted, text[:64])[(1, "gate")].abs().amax(0)
    assert sorted(largest.topk(3).indices.tolist()) == list(rounded_model.OUTLIERS)
    rough = rounded_model.round_matrices(model, lambda _name, weight: (8 * weight).round() / 8)
    assert ruler.measure(rough)["kl_millinats"] > 1


def test_lesson_figures_of_bits_and_steps_are_by_the_clock(formats: ModuleType) -> None:
    text, clock = read_lesson(), formats.Clock()
    rows = re.findall(r"\| (\d) bits \| (\d+) \| ([\d.]+) \| ([\d.]+) GB \|", text)
    assert len(rows) == 5
    for bits, group, bits_per_weight, gigabytes in rows:
        assert float(bits_per_weight) == int(bits) + 24 / int(group)
        assert gigabytes == f"{clock.weight_bytes * float(bits_per_weight) / 16 / 1e9:.1f}"
    assert f"| 16 bits | | 16 | {clock.weight_bytes / 1e9:.1f} GB |" in text
    choices = {"16 bits": (16.0, False), "4 bits in groups of 32": (4.75, False)}
    choices |= {"FP8, products in 16 bits": (8.0, False), "FP8, products in FP8": (8.0, True)}
    steps = formats.list_step_times(clock, choices, (1, 512), 100)
    for step in steps:
        of_one = "the run computes it" if step is steps[1] else f"{step['sim_ms_batch_1']:.1f} ms"
        assert f"| {step['format']} | {of_one} | {step['sim_ms_batch_512']:.1f} ms |" in text
    room = [f"{round(step['cache_tokens'], -3):,}" for step in steps[:2]]
    assert f"about {room[0]} tokens with weights of 16 bits, and for about {room[1]} with weights of 4.75" in text
