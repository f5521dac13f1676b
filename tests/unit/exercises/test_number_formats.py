"""The number formats of 9.5, its sums and products, and the figures of its lesson."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from gpucourse.course.locate import find_course
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
FOLDER = "09-frontier-training"


@pytest.fixture(scope="module")
def formats() -> ModuleType:
    return beside_the_script(FOLDER, "number_formats")


@pytest.fixture(scope="module")
def trial() -> ModuleType:
    return beside_the_script(FOLDER, "precision_trial")


def read_lesson() -> str:
    path = find_course({}).modules / FOLDER / "lesson-6-formats.md"
    return path.read_text(encoding="utf-8")


def test_round_to_e2m1_takes_the_nearest_code_and_the_even_one_for_ties(formats: ModuleType) -> None:
    import torch

    numbers = torch.cat([torch.linspace(-8, 8, 3201), torch.tensor([-0.0, float("inf"), float("nan")])])
    rounded = formats.round_to(numbers, "E2M1")
    codes = torch.cat([-formats.E2M1_VALUES.flip(0), formats.E2M1_VALUES])
    nearest = (numbers[:-2, None].clamp(-6, 6) - codes).abs().amin(1)
    assert torch.equal((rounded[:-2] - numbers[:-2].clamp(-6, 6)).abs(), nearest)
    assert formats.round_to(torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]), "E2M1").tolist() == [0, 1, 1, 2, 2, 4, 4]
    assert torch.signbit(rounded[-3])
    assert float(rounded[-2]) == 6
    assert bool(rounded[-1].isnan())


def test_sum_products_with_all_bits_is_exact_and_promotion_helps_with_few(formats: ModuleType) -> None:
    import torch

    a, b = torch.rand(8, 1024), torch.rand(8, 1024)
    exact = (a.double() * b.double()).sum(1)
    assert formats.sum_products(a, b, 23, 0).double() == pytest.approx(exact, rel=1e-6)
    errors = [(formats.sum_products(a, b, 10, promote) - exact).abs().mean() for promote in (0, 128)]
    assert errors[0] > 3 * errors[1]
    ones = torch.ones(1, 4096)
    assert float(formats.sum_products(ones, ones, 8, 0)) == 4096, "powers of two and their multiples need few bits"


def test_products_of_a_layer_equal_scaled_mm() -> None:
    import torch

    recipes = beside_the_script(FOLDER, "recipes")
    assert recipes.measure_products() < 1e-6
    source = torch.Generator().manual_seed(1)
    a, b = torch.randn(32, 64, generator=source), torch.randn(16, 64, generator=source)
    (codes, scale), (others, other_scale) = recipes.scale_rows(a), recipes.scale_rows(b)
    one = torch.ones(())
    right = torch._scaled_mm(
        codes.to(torch.float8_e4m3fn), others.to(torch.float8_e4m3fn).T, scale_a=one, scale_b=one, out_dtype=torch.float32
    )
    recipe = recipes.Recipe("rows", lambda matrix: torch.mul(*recipes.scale_rows(matrix)))
    assert recipe.multiply(a, b) == pytest.approx(right * scale * other_scale.T, rel=1e-4, abs=1e-5)


def test_recipe_counts_gradients_that_become_zero() -> None:
    import torch

    recipes = beside_the_script(FOLDER, "recipes")
    recipe = recipes.Recipe("unscaled", recipes.round_unscaled)
    gradient = torch.tensor([0.0, 1e-4, 1.0, -1e-5])
    recipe.count_zeros(gradient, recipe.rounding(gradient))
    assert (recipe.gradients, recipe.zeros) == (3, 2)


def test_lesson_figures_of_formats_follow_from_their_codes(formats: ModuleType, trial: ModuleType) -> None:
    text = read_lesson()
    rows = re.findall(r"\| (float16|bfloat16|E5M2|E4M3|E2M1) \| (2\^-\d+|1) \| (\S+) \| (\S+) \| ([\d.]+) % \|", text)
    assert len(rows) == 5
    for name, power, smallest, largest, half in rows:
        form = formats.FORMATS[name]
        lowest = 2 - 2 ** (form.exponent_bits - 1)
        assert power == (f"2^{lowest}" if lowest else "1")
        assert trial.find_smallest(name) == (2.0 ** int(smallest[2:]) if smallest.startswith("2^") else float(smallest))
        assert float(largest.replace(",", "")) == pytest.approx(form.largest, rel=1e-3)
        assert float(half) == pytest.approx(100 * 2.0 ** -(form.mantissa_bits + 1), abs=0.005)


def test_lesson_figures_of_schemes_and_sums_are_measured(trial: ModuleType) -> None:
    text = read_lesson()
    schemes = {row["scheme"]: row for row in trial.compare_schemes(30000)}
    for scheme, words in (
        ("E4M3, one scale", "| E4M3 | 262,144 | float32 | 8 |"),
        ("E5M2, one scale", "| E5M2 | 262,144 | float32 | 8 |"),
        ("E4M3, a scale a row", "| E4M3 | a row of 512 | float32 | 8.06 |"),
        ("E2M1, one scale", "| E2M1 | 262,144 | float32 | 4 |"),
    ):
        error = schemes[scheme]["others_percent"]
        assert f"{words} {error:.0f} % |" in text or f"{words} {error:.1f} % |" in text, (scheme, error)
    for bits in (13, 10):
        never, promoted = (row["error_percent"] for row in trial.list_sums(bits, 128)[:2])
        cell = "the run asks you" if bits == 13 else f"{never:.2g} %"
        assert f"| {bits} | {cell} | {promoted:.2g} % |" in text, (bits, never, promoted)
    one, sent = (row["error_percent"] for row in trial.list_sums(13, 0)[1:])
    words = " ".join(text.split())
    assert f"in bfloat16, the sum is {one:.2f} % off" in words
    assert f"in float32, the sum is {sent:.2f} % off" in words
