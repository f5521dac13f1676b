"""Figures that lessons quote are those of the course's own formulas and tables."""

from __future__ import annotations

import math
import re

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script
from tests.unit.exercises.test_bandwidth import MIB, p4de

CATALOG = load(find_course({}))
bandwidth = beside_the_script("shared", "bandwidth")
costs = beside_the_script("04-benchmarking", "costs")
gpus = beside_the_script("shared", "gpus")
T4 = next(gpu for gpu in gpus.table() if gpu.gpu == "T4")


def lesson(number: str) -> str:
    """A lesson in one line, without the breaks of its lines."""
    return " ".join(CATALOG.lesson(CATALOG.module(number)).split())


def test_the_busbw_of_two_nodes_is_that_of_the_published_curve() -> None:
    quoted = re.search(r"Two nodes of 8 A100 give a busbw of (\d+) GB/s at 32 MiB, .* and of (\d+) GB/s at 2 GiB", lesson("3"))
    assert quoted
    sizes, busbw = p4de(12)
    assert [int(figure) for figure in quoted.groups()] == [round(busbw[sizes.index(32 * MIB)]), round(busbw[-1])]


def test_tensor_cores_are_as_much_faster_as_the_table_says() -> None:
    (row,) = re.findall(r"\| tensor core \| [^|]*? or less: ([^|]*) \|", lesson("1"))
    quoted = {name: int(times) for times, name in re.findall(r"(\d+)[a-z ]* on an? (\w+)", row)}
    assert set(quoted) == {"A10G", "L4", "T4", "A100"}
    for name, times in quoted.items():
        of_name = [gpu for gpu in gpus.table() if gpu.gpu.split()[0] == name]
        assert [round(gpu.fp16 / gpu.fp32) for gpu in of_name] == [times] * len(of_name), name


HINT = next(hint for hint in CATALOG.exercise("1.1")[1].hints if hint.startswith("A launch costs"))


@pytest.mark.parametrize("text", [lesson("1"), HINT], ids=["lesson", "hint"])
def test_a_small_product_takes_as_long_as_its_launch(text: str) -> None:
    whole_us = 2 * 100**3 / (T4.fp32 * 1e12) * 1e6
    assert whole_us == pytest.approx(0.25, abs=0.01)
    assert "a quarter of a microsecond" in text
    assert f"two of them need {whole_us * T4.sms / 2:.0f}" in text


def test_a_number_is_used_as_often_as_the_matrix_has_rows() -> None:
    assert "used N times: 5,000 times at N = 5000, 100 times at N = 100" in lesson("1")


def test_spot_costs_what_the_price_table_says() -> None:
    shares = [[spot / price.usd_per_hour for spot in price.spot] for price in costs.prices()[0] if price.spot]
    low, high = (100 * limit(share for pair in shares for share in pair) for limit in (min, max))
    assert f"**Spot** costs {low:.0f} to {high:.0f}% of the price on demand, by type and zone;" in lesson("4")
    assert max(min(pair) for pair in shares) < 0.5
    assert "in the cheapest zone it is less than half" in lesson("4")
    assert any(task.startswith("In its cheapest zone spot costs less than half.") for task in CATALOG.exercise("4.4")[1].tasks)


def test_a_first_call_is_not_busy_with_a_context_that_exists() -> None:
    folders = CATALOG.folders
    script = (folders.exercises / "01-basic-gpu" / "hello_gpu.py").read_text(encoding="utf-8")
    assert script.index("a.to(device)") < script.index("cold = bench.time_each("), "the first copy makes the context"
    question = next(question for question in CATALOG.exercise("1.1")[1].questions if question.id == "first-call")
    assert not [option for option in question.options if "context" in option]


def test_copies_of_pageable_memory_are_called_so() -> None:
    folders = CATALOG.folders
    script = (folders.exercises / "01-basic-gpu" / "hello_gpu.py").read_text(encoding="utf-8")
    assert "pin_memory" not in script, "then the labels are wrong"
    exercise = CATALOG.exercise("1.1")[1]
    labels = [series.label for plot in exercise.plots for series in plot.series if "with_copies" in series.key]
    titles = [column.title for table in exercise.tables for column in table.columns if "with_copies" in column.key]
    assert len(labels) == 2
    assert all("pageable" in label for label in [*labels, *titles])
    assert "*pinned* memory" in lesson("1")


def test_the_training_state_of_a_model_is_sixteen_bytes_a_parameter() -> None:
    width = 2048
    parameters = (64 + 1) * width + (width + 1) * width + (width + 1) * 10
    assert parameters == width**2 + 76 * width + 10
    assert f"At h = {width} that is {parameters:,} parameters and {16 * parameters / 1e6:.1f} MB." in lesson("5")
    assert "A model of 7 billion has 112 GB" in lesson("5")


def test_what_the_slow_training_reads_in_a_step() -> None:
    assert f"1 + 32 x (10 + 1) = {1 + 32 * (10 + 1)}" in lesson("5")
    (exercise,) = [item for item in CATALOG.module("5").exercises if item.id == "5.9"]
    assert exercise.predict
    assert f"{2048 // 32 * 353:,} at 2,048 samples" in (exercise.predict.explanation or "")


def test_the_intervals_between_saves_are_youngs() -> None:
    text = (CATALOG.folders.modules / "06-training-at-scale/lesson-5-crashes.md").read_text(encoding="utf-8")
    words = " ".join(text.split())
    best = math.sqrt(2 * 2 * 4 * 3600)
    quoted = re.search(r"= (\d+) s\. Saves and crashes then take ([\d.]+) % each", words)
    assert quoted
    assert (float(quoted[1]), float(quoted[2])) == (best, round(100 * 2 / best, 2))
    costs_by_factor = [100 * (2 / (factor * best) + factor * best / 2 / (4 * 3600)) for factor in (3, 1)]
    assert f"costs {costs_by_factor[0]:.1f} % in place of {costs_by_factor[1]:.1f} %" in words
    hours = 3 * 365 * 24 / 1000
    assert f"every {hours:.0f} hours" in words
    assert f"then wants {math.sqrt(2 * 60 * hours * 3600) / 60:.0f} minutes" in words
