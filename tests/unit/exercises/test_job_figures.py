"""Figures in the lessons of 9.7 and 9.8 are those of the course's own counts, and of the published ones that it keeps."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from docs.pictures import muon

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.course import CATALOG
from tests.recorded_results import read_result
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "09-frontier-training"


def read_lesson(name: str) -> str:
    """Return a lesson in one line, without the breaks of its lines."""
    path: Path = find_course({}).modules / FOLDER / name
    return " ".join(path.read_text(encoding="utf-8").split())


MUON, SICK = read_lesson("lesson-8-muon.md"), read_lesson("lesson-9-sick-gpu.md")


@needs_torch
def test_steep_and_flat_iterations_end_where_the_lesson_says(torch: ModuleType) -> None:
    trial = beside_the_script(FOLDER, "muon_trial")
    values = torch.linspace(0.005, 1, 2000, dtype=torch.float64)
    after = trial.apply_plan(values, trial.make_plan("hybrid", 0))
    assert round(float(after.min()), 3) == 1
    assert float(after.max()) < 1.0006
    assert "from 0.005 to 1 then ends between 1 and 1.0006" in MUON
    five = trial.apply_plan(values[values >= 0.02], trial.make_plan("quintic", 5))
    assert 0.65 < float(five.min()) < float(five.max()) < 1.21


def list_works(trial: ModuleType, layers: int) -> list[int]:
    """Return the work of each matrix that Muon changes, in the model's order."""
    shapes = trial.list_shapes(layers, 64)
    return [trial.count_flops(*shape) for name, shape in shapes.items() if trial.is_hidden(name, shape)]


def share_largest_first(works: list[int], ranks: int) -> list[int]:
    """Return the work of each rank if the largest matrix always goes to the rank with the least work."""
    shares = [0] * ranks
    for work in sorted(works, reverse=True):
        shares[shares.index(min(shares))] += work
    return shares


@needs_torch
def test_shares_of_the_picture_are_as_uneven_as_the_lesson_says() -> None:
    works = list_works(beside_the_script(FOLDER, "muon_trial"), 2)
    mean = sum(works) / 4
    dealt = [sum(works[rank::4]) / mean for rank in range(4)]
    assert [f"{max(dealt):.2f}", f"{min(dealt):.2f}"] == ["1.29", "0.43"]
    assert f"{max(share_largest_first(works, 4)) / mean:.2f}" == "1.14"
    assert "dealing in turn gives a rank 1.29 times the mean work" in MUON


@needs_torch
def test_iterations_have_the_flops_of_torchs_own_and_the_prediction_is_not_in_the_lesson() -> None:
    trial = beside_the_script(FOLDER, "muon_trial")
    counted, step = trial.count_torch_flops(512, 5), trial.count_step_flops(512, 4096)
    assert counted == 5 * trial.count_flops(512, 512)
    assert counted / step == 5 * 512 / 4096
    prediction = load(find_course({})).exercise("9.7")[1].predict
    assert prediction
    assert f"{100 * 5 * 4096 / 1048576:.2f} %" in (prediction.explanation or "")
    assert "1.95 %" not in MUON


def test_eighty_ranks_wait_for_those_with_two_matrices() -> None:
    question = next(question for question in CATALOG.exercise("9.7")[1].questions if question.id == "eighty-ranks")
    counts = share_largest_first([1] * 120, 80)
    assert question.value == 100 * (1 - sum(counts) / len(counts) / max(counts))


@needs_torch
@pytest.mark.parametrize("ranks", range(2, 17))
def test_find_max_load_allows_the_largest_first(ranks: int) -> None:
    trial = beside_the_script(FOLDER, "muon_trial")
    for layers in range(1, 13):
        most = max(share_largest_first(list_works(trial, layers), ranks))
        assert most <= trial.find_max_load(layers, 64, ranks) * (1 + 1e-9)


def test_rates_of_the_picture_are_lowest_where_a_recorded_run_has_its_best() -> None:
    metrics = read_result(CATALOG.exercise("9.7")[1])[1]
    for row in metrics["best"]:
        losses = muon.LOSSES["standard" if row["who"] == "standard" else "muP"][row["width"]]
        assert losses.index(min(losses)) - 10 == row["rate"]
    assert [row["rate"] for row in metrics["best"] if row["who"] == "standard"] == [-7, -8, -10]
    assert "falls from 2⁻⁷ at width 32 to 2⁻⁸ at width 64" in MUON
    changes = {row["width"]: row["change"] for row in metrics["checks"] if row["who"] == "standard"}
    assert round((changes[256] / changes[32]) ** (1 / 3), 1) == 1.8
    assert "about 1.8 times as large with each doubling" in MUON


@needs_torch
@pytest.mark.parametrize(("width", "rate"), [(32, -10), (32, -7), (64, -8)])
def test_losses_of_the_picture_are_those_of_a_training(width: int, rate: int) -> None:
    widths = beside_the_script(FOLDER, "widths")
    loss, _ = widths.train(width, widths.keep_standard, 2.0**rate, 48)
    assert muon.LOSSES["standard"][width][rate + 10] == pytest.approx(loss, abs=0.03)


def read_accounts() -> dict[str, Any]:
    path = find_course({}).exercises / FOLDER / "accounts.json"
    accounts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return accounts


def test_published_figures_are_the_same_in_lesson_and_exercise() -> None:
    accounts = read_accounts()
    whole, causal = accounts["jobs"][1], accounts["jobs"][0]
    assert f"all of attention counted | {whole['published_tflops']} | {whole['published_percent']} %" in SICK
    assert f"the causal half | {causal['published_tflops']} | {causal['published_percent']} %" in SICK
    for job in accounts["jobs"]:
        assert 100 * job["published_tflops"] / accounts["gpu"]["peak_tflops"] == pytest.approx(
            job["published_percent"], abs=0.1
        )
    assert round(100 * 148 / 419, 1) == 35.3
    assert "it is 35.3 %" in SICK


def test_a_day_of_training_is_half_lost() -> None:
    accounts = read_accounts()
    log = accounts["log"]
    trained = sum(after["hour"] - entry["hour"] for entry, after in pairwise(log) if entry["event"] == "trains")
    assert round(100 * trained / 24) == 90
    kept = (9.5 + 24 - 21.8) / 24  # the second attempt at step 9,000 had 9.5 hours behind it
    assert accounts["kept_percent"] == pytest.approx(100 * kept)


def test_questions_about_the_accounts_have_the_numbers_of_the_sources() -> None:
    questions = {question.id: question for question in load(find_course({})).exercise("9.8")[1].questions}
    average = 100 * 6 * 405e9 * 15.6e12 / (30.84e6 * 3600 * 989e12)
    assert questions["average-mfu"].value == pytest.approx(average, abs=0.1)
    assert f"{24 * 54 * 16384 / 419:,.0f} hours" in (questions["memory-of-yours"].explanation or "")
    assert questions["memory-of-yours"].value == pytest.approx(24 * 54 * 16384 / 72 / 2000, abs=0.1)
